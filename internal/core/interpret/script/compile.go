package script

type compiled struct{ functions []Function }
