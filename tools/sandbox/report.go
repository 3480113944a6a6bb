package sandbox

// Report is what this system offers for a sandbox, for drover doctor.
type Report struct {
	// OS and Arch are those of this program, Kernel is the kernel's release.
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Kernel string `json:"kernel,omitempty"`
	// Landlock is the version of Landlock, 0 if there is none.
	Landlock int `json:"landlock"`
	// Seccomp tells whether system calls can be filtered.
	Seccomp bool `json:"seccomp"`
	// UserNamespaces tells whether a helper could be set up in namespaces, and
	// Problem what stood in the way.
	UserNamespaces bool   `json:"user_namespaces"`
	Problem        string `json:"problem,omitempty"`
	// Bubblewrap is the program that makes namespaces where drover may not; empty
	// if it is not installed or may not either.
	Bubblewrap string `json:"bubblewrap,omitempty"`
	// Overlay tells whether folders can have private layers.
	Overlay bool `json:"overlay"`
	// Seatbelt tells whether sandbox-exec is there.
	Seatbelt bool `json:"seatbelt"`
	// Level is the highest level to be had.
	Level Level `json:"level"`
	// Hints say what would raise the level.
	Hints []string `json:"hints,omitempty"`
}
