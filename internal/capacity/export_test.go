package capacity

// Sweep gives up what was waited for too long, without the wait between two looks.
func (f *Fleet) Sweep() { f.sweep() }
