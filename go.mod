module github.com/forbear-go/forbear

go 1.26
