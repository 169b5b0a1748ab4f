// What forbear lint and forbear check refuse: a module of its own, so that ./... above
// does not have it.
module before

go 1.26
