package board

// Show says what is shown beside what everybody sees.
type Show struct {
	// Agents gives each sub-agent a lane of its own, Reasoning shows what the
	// model thinks.
	Agents, Reasoning bool
}
