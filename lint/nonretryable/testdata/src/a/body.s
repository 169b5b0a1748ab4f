// The compiler takes a function without a body beside a file of assembly.
