package search

import "os"

// tree opens what is below a folder and nothing else, even if a part of a path
// becomes a link to somewhere else between the look at its folder and the
// opening: a command that runs at the same time must not be able to show the
// search a file that it may not read itself. Where there is no quick way, links
// that stay below the folder are followed in that moment.
type tree struct {
	// beneath is the quick way, where the system has one.
	beneath beneath
	root    *os.Root
}

func openTree(dir string) (*tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &tree{beneath: openBeneath(root), root: root}, nil
}

// close ignores the errors: nothing was written.
func (t *tree) close() {
	t.beneath.close()
	_ = t.root.Close()
}

// file opens a regular file that is no link.
func (t *tree) file(rel string) (file, int64, error) {
	if t.beneath.ok() {
		return t.beneath.file(rel)
	}
	std, err := t.root.OpenFile(rel, openFlags, 0)
	if err != nil {
		return file{}, 0, err
	}
	return adopt(std, rel)
}

// folder opens a folder; "." is the tree's own.
func (t *tree) folder(rel string) (*os.File, error) {
	if t.beneath.ok() {
		return t.beneath.folder(rel)
	}
	return t.root.OpenFile(rel, folderFlags, 0)
}
