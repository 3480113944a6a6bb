package sandbox

// placement is one change of the tree that commands see. They are made in order
// of depth, so that what is deeper lies on top.
type placement struct {
	kind placementKind
	path string
}

type placementKind int64

// The kinds of placements. Of those with the same path a later kind wins.
const (
	// layered is a folder with a private upper layer.
	layered placementKind = iota
	// temporaryLayer is a folder with a private upper layer, or, where there is
	// none to be had, an empty private one.
	temporaryLayer
	// empty is a folder with a private, empty one on top.
	empty
	// deaf is a folder whose files can be read and whose sockets lead nowhere.
	deaf
	// pinned is a folder as it is, which cannot be moved: what is protected below
	// would move with it, and leave its name to whatever is put there.
	pinned
	// writable is a file or folder as it is.
	writable
	// protected is a file or folder that is not written.
	protected
	// linked is a symbolic link to something protected, which stays what it is.
	linked
	// lifted is a file or folder that is written although it is protected.
	lifted
	// masked is a file or folder that is not read.
	masked
)

// setup is everything the helper has to know before it can start commands.
type setup struct {
	level Level
	// landlock is the version of Landlock to use, 0 for none.
	landlock int
	network  bool
	// layers is the folder of the private upper layers, which exists. With
	// memory they are kept in memory, and the folder is only a place to mount.
	layers string
	memory bool
	// whole is set if everything can be written but for the protected folders.
	whole      bool
	placements []placement
	// private are folders for LevelLandlock, which are written.
	private []string
	// open are links to protected folders that can be replaced, with bubblewrap;
	// the helper does not need them.
	open []string
	// unlayered are the folders that got no layer from bubblewrap.
	unlayered []string
	faults    faults
}

func (s *setup) pack() []byte {
	var p packer
	p.string(string(s.level))
	p.number(int64(s.landlock))
	p.number(int64(flag(s.network)))
	p.string(s.layers)
	p.number(int64(flag(s.memory)))
	p.number(int64(flag(s.whole)))
	p.number(int64(len(s.placements)))
	for _, b := range s.placements {
		p.number(int64(b.kind))
		p.string(b.path)
	}
	p.strings(s.private)
	p.number(int64(s.faults))
	return p
}

func unpackSetup(body []byte) (*setup, error) {
	u := unpacker{rest: body}
	s := &setup{
		level: Level(u.string()), landlock: int(u.number()), network: u.number() != 0,
		layers: u.string(), memory: u.number() != 0, whole: u.number() != 0,
	}
	n := u.number()
	if n < 0 || n > int64(len(u.rest)) {
		u.fail()
		n = 0
	}
	for range n {
		s.placements = append(s.placements, placement{placementKind(u.number()), u.string()})
	}
	s.private = u.strings()
	s.faults = faults(u.number())
	return s, u.end()
}
