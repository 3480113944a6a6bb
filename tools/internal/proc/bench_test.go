//go:build linux

package proc

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

func BenchmarkTrue(b *testing.B) {
	for b.Loop() {
		if _, err := Run(context.Background(), Spec{Argv: []string{"true"}, Env: testEnv(), Merge: true}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTrueFloor is what the standard library takes for the same.
func BenchmarkTrueFloor(b *testing.B) {
	for b.Loop() {
		if _, err := exec.Command("true").CombinedOutput(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLookNobody is the look for descendants after a short command.
func BenchmarkLookNobody(b *testing.B) {
	for b.Loop() {
		k := newKin(lastPID(), markVar+"=none", 0)
		if left := k.living(); left != nil {
			b.Fatal(left)
		}
	}
}

// BenchmarkLookEverywhere is the same after a long command.
func BenchmarkLookEverywhere(b *testing.B) {
	k := newKin(os.Getpid()+1<<20, markVar+"=none", 0)
	k.begun = time.Now().Add(-time.Hour)
	for b.Loop() {
		if left := k.living(); left != nil {
			b.Fatal(left)
		}
	}
}

func BenchmarkOutput50MB(b *testing.B) {
	b.SetBytes(50 << 20)
	for b.Loop() {
		var buf Buffer
		_, err := Run(context.Background(), Spec{
			Argv: []string{"head", "-c", "52428800", "/dev/zero"}, Env: testEnv(), Merge: true,
			Output: func(_ Stream, p []byte) { buf.Write(p) },
		})
		if err != nil || buf.Total() != 50<<20 {
			b.Fatal(buf.Total(), err)
		}
	}
}

// BenchmarkSweep is the look at the end of a run that left nothing.
func BenchmarkSweep(b *testing.B) {
	for b.Loop() {
		if n, err := Sweep(context.Background(), "none", 0); n != 0 || err != nil {
			b.Fatal(n, err)
		}
	}
}
