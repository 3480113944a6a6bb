package cmd

import "golang.org/x/sys/unix"

// identify describes a folder by what no other one shares.
func identify(path string) (plantedFolder, bool) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &st)
	if err != nil {
		return plantedFolder{}, false
	}
	p := plantedFolder{Path: path, Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Inode: st.Ino}
	if st.Mask&unix.STATX_BTIME != 0 {
		p.Born = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return p, true
}
