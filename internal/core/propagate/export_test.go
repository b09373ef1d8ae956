package propagate

var Activated = activated
