package server

// AllParts are the parts of a whole hub: the one place where they are put together.
func AllParts() Parts {
	return Parts{}
}
