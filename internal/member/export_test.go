package member

// Pending and Kept are what counts against the limit of memory.
func (m *Member) Pending() int64 { return m.pending.Load() }
func (m *Member) Kept() int64    { return m.stored.Load() }
