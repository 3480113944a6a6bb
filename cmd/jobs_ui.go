package cmd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"drover/jobs/store"
	"drover/jobs/ui"
	"drover/output/fault"
)

func newJobsUICmd(a *app) *cobra.Command {
	var listen string
	c := jobCmd(a, "ui", "Serve the web UI of the queue on this machine, until a signal ends it",
		func(f *pflag.FlagSet) {
			f.StringVar(&listen, "listen", "127.0.0.1:0", "address on the loopback interface; port 0 takes a free one")
		},
		func(ctx context.Context, s *store.Store, j *store.Job) error { return a.serveUI(ctx, s, listen) })
	c.Long = "Serve River's web UI for the queue of a job, on the loopback interface only. Standard\noutput gets one line, the URL; its token lets you in, and nobody else. SIGINT and SIGTERM\nend it with exit 0."
	return c
}

// serveUI serves the web UI until a signal.
func (a *app) serveUI(ctx context.Context, s *store.Store, listen string) error {
	bad := func(why string) error {
		return &fault.Error{Code: "usage", What: fmt.Sprintf("--listen %q cannot be used", listen), Why: why, Fix: "use 127.0.0.1:0, or another port of 127.0.0.1 or [::1]", Exit: fault.Usage}
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return bad(err.Error())
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return bad("the UI can change the job, and is served on the loopback interface only")
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return &fault.Error{Code: "listen", What: fmt.Sprintf("--listen %q cannot be used", listen), Why: err.Error(), Fix: "take another port, or 0 for a free one", Exit: fault.Environment, Err: err}
	}
	defer l.Close()
	ctx, stopping := a.handleSignals(ctx, patienceWithReader, nil)
	defer stopping.stop()
	secret := make([]byte, 16)
	_, _ = rand.Read(secret) // never fails; the runtime aborts instead
	token := hex.EncodeToString(secret)
	handler, err := ui.Handler(ctx, s, l.Addr().String(), token)
	if err != nil {
		return fmt.Errorf("serve the web UI: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }() // ends with the listener
	if _, err := fmt.Fprintf(a.stdout, "http://%s/?token=%s\n", l.Addr(), token); err != nil {
		return err
	}
	select {
	case err := <-served:
		return fmt.Errorf("serve the web UI: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), patienceWhenHurried)
	defer cancel()
	if err := server.Shutdown(end); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("end the web UI: %w", err)
	}
	return nil
}
