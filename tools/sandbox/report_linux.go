package sandbox

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Probe tries what this system offers. It starts a helper, which starts nothing.
func Probe(ctx context.Context) Report {
	r := Report{OS: runtime.GOOS, Arch: runtime.GOARCH, Kernel: release(), Seccomp: filterSupported(), Landlock: landlockABI(), Level: LevelNone}
	refused, err := probeNamespaces(ctx)
	if err != nil {
		r.Problem = err.Error()
	}
	r.UserNamespaces = err == nil
	if err != nil {
		r.Bubblewrap = probeBubblewrap(ctx)
	}
	r.Overlay = r.UserNamespaces && !refused
	switch {
	case !r.Seccomp:
		r.Hints = append(r.Hints, "the kernel cannot filter system calls here, or drover does not know "+r.Arch)
	case r.UserNamespaces:
		r.Level = LevelNamespaces
	case r.Bubblewrap != "":
		r.Level = LevelBubblewrap
	case r.Landlock >= minLandlock:
		r.Level = LevelLandlock
	}
	if !r.UserNamespaces && wrapper() == "" {
		r.Hints = append(r.Hints, "bubblewrap makes namespaces on many systems where others may not: install it (bwrap in /usr/bin)")
	}
	r.Hints = append(r.Hints, hints(&r, os.ReadFile)...)
	return r
}

// probeNamespaces sets a helper up with one layer over a folder of its own.
func probeNamespaces(ctx context.Context) (overlayRefused bool, err error) {
	dir, err := os.MkdirTemp("", "drover-doctor-")
	if err != nil {
		return false, err
	}
	defer removeLayers(dir)
	dir = realPath(dir)
	layers, lower := dir+"/layers", dir+"/lower"
	for _, d := range []string{layers, lower} {
		if err := makePrivate(d); err != nil {
			return false, err
		}
	}
	s := &setup{level: LevelNamespaces, landlock: landlockABI(), layers: layers}
	s.add(layered, lower)
	c, refused, err := start(ctx, "", s, nil)
	if err != nil {
		return false, err
	}
	c.close(0)
	return slices.Contains(refused, lower), nil
}

// probeBubblewrap returns bubblewrap if it can set a helper up.
func probeBubblewrap(ctx context.Context) string {
	path := wrapper()
	if path == "" {
		return ""
	}
	dir, err := os.MkdirTemp("", "drover-doctor-")
	if err != nil {
		return ""
	}
	defer removeLayers(dir)
	c, _, err := start(ctx, "", &setup{level: LevelBubblewrap, landlock: landlockABI(), layers: realPath(dir)}, nil)
	if err != nil {
		return ""
	}
	c.close(0)
	return path
}

func release() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// hints explain from the settings of the kernel what is missing.
func hints(r *Report, read func(string) ([]byte, error)) []string {
	is := func(file, value string) bool {
		b, err := read(file)
		return err == nil && strings.TrimSpace(string(b)) == value
	}
	var out []string
	if !r.UserNamespaces {
		if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
			out = append(out, "this system keeps user namespaces for root: sysctl kernel.unprivileged_userns_clone=1 opens them")
		}
		if is("/proc/sys/user/max_user_namespaces", "0") {
			out = append(out, "no user namespace is allowed: sysctl user.max_user_namespaces=10000 allows some")
		}
		if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
			out = append(out, "AppArmor restricts user namespaces: give drover a profile with userns, or sysctl kernel.apparmor_restrict_unprivileged_userns=0")
		}
		if container(read) {
			out = append(out, "this is a container whose system call filter may refuse namespaces: start it with --security-opt seccomp=unconfined, or with a profile that allows them")
		}
	}
	if r.UserNamespaces && !r.Overlay {
		out = append(out, "overlays are refused here: the caches of the user are read-only for commands, and empty private ones stand in for them")
	}
	switch {
	case r.Landlock == 0:
		out = append(out, "the kernel has no Landlock, or it is not in its list of security modules (lsm=landlock,…)")
	case r.Landlock < 6:
		out = append(out, "the kernel's Landlock does not bound signals and abstract sockets; Linux 6.12 has one that does")
	}
	return out
}

// container tells whether this is Docker, Podman or the like.
func container(read func(string) ([]byte, error)) bool {
	for _, file := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := read(file); err == nil {
			return true
		}
	}
	b, err := read("/proc/1/cgroup")
	return err == nil && (strings.Contains(string(b), "docker") || strings.Contains(string(b), "kubepods"))
}
