package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
)

func (e *env) podURL(sub string) *url.URL {
	return e.typed.CoreV1().RESTClient().Post().Resource("pods").Namespace(e.ns).Name(*pod).SubResource(sub).URL()
}

// run executes a command by one of the two executors.
func (e *env) run(kind string, stdin io.Reader, command ...string) (stdout, stderr string, err error) {
	target := e.typed.CoreV1().RESTClient().Post().Resource("pods").Namespace(e.ns).Name(*pod).SubResource("exec").VersionedParams(
		&core.PodExecOptions{Command: command, Stdin: stdin != nil, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	var executor remotecommand.Executor
	if kind == "spdy" {
		executor, err = remotecommand.NewSPDYExecutor(e.config, "POST", target)
	} else {
		executor, err = remotecommand.NewWebSocketExecutor(e.config, "GET", target.String())
	}
	must(err)
	var out, problems bytes.Buffer
	err = executor.StreamWithContext(e.ctx, remotecommand.StreamOptions{Stdin: stdin, Stdout: &out, Stderr: &problems})
	return out.String(), problems.String(), err
}

func sum(text string) string { return fmt.Sprintf("%d bytes %x", len(text), sha256.Sum256([]byte(text)))[:30] }

// streams runs commands and forwards a port of the pod -pod, where -port answers HTTP.
func streams(e *env) {
	for _, kind := range []string{"spdy", "websocket"} {
		out, problems, err := e.run(kind, nil, "sh", "-c", "echo out; echo err >&2")
		say("%s: %q %q %v", kind, out, problems, err)
		_, _, err = e.run(kind, nil, "sh", "-c", "exit 5")
		code, isExit := err.(exec.ExitError)
		say("%s: exit %v %v", kind, isExit, isExit && code.ExitStatus() == 5)
		big := strings.Repeat("0123456789abcdef", 200_000)
		out, _, err = e.run(kind, strings.NewReader(big), "cat")
		say("%s: echoed %v %v", kind, sum(out) == sum(big), err)
		out, _, err = e.run(kind, nil, "sh", "-c", "printf %s \"$1\" | wc -c", "sh", strings.Repeat("x", 100_000))
		say("%s: a long word of %s %v", kind, strings.TrimSpace(out), err)
	}
	for _, kind := range []string{"spdy", "websocket"} {
		forward(e, kind)
	}
	logs, err := e.typed.CoreV1().Pods(e.ns).GetLogs(*pod, &core.PodLogOptions{Container: "main"}).DoRaw(e.ctx)
	say("logs: %q %v", logs, err)
}

// forward asks -port a few times through one port-forward.
func forward(e *env, kind string) {
	var dialer httpstream.Dialer
	var err error
	if kind == "spdy" {
		transport, upgrader, broken := spdy.RoundTripperFor(e.config)
		must(broken)
		dialer = spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", e.podURL("portforward"))
	} else {
		dialer, err = portforward.NewSPDYOverWebsocketDialer(e.podURL("portforward"), e.config)
		must(err)
	}
	stop, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.New(dialer, []string{fmt.Sprintf("0:%d", *port)}, stop, ready, io.Discard, io.Discard)
	must(err)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		must(fmt.Errorf("forward by %s: %v", kind, err))
	case <-time.After(20 * time.Second):
		must(fmt.Errorf("forward by %s: not ready", kind))
	}
	ports, err := forwarder.GetPorts()
	must(err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	total := 0
	for range 5 {
		answer, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/", ports[0].Local))
		must(err)
		body, err := io.ReadAll(answer.Body)
		must(err)
		total += len(body)
	}
	close(stop)
	say("%s: forwarded %d bytes, %v", kind, total, <-ended)
}
