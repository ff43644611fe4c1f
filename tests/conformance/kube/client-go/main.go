// A small program on client-go: typed and dynamic clients, shared informers, leader election, streams. It speaks to the API of
// a kubeconfig inside one namespace and prints what it saw, one fact a line, for a test to compare.
//
//	client-go -kubeconfig FILE -namespace NS typed|dynamic|informers|election|streams|restart
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// env is what every part works with.
type env struct {
	ctx     context.Context
	ns      string
	config  *rest.Config
	typed   *kubernetes.Clientset // speaks protobuf where the server does
	dynamic *dynamic.DynamicClient
}

var (
	pod  = flag.String("pod", "", "the pod of streams")
	port = flag.Int("port", 0, "a port of it that answers HTTP")
)

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "client-go:", err)
		os.Exit(1)
	}
}

// await looks again and again until ok: what informers learn arrives in its own time.
func await(what string, ok func() bool) {
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			must(fmt.Errorf("%s: not within 20 s", what))
		}
	}
}

func main() {
	file := flag.String("kubeconfig", "", "the kubeconfig to use")
	ns := flag.String("namespace", "default", "the namespace to work in")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *file)
	must(err)
	config.QPS, config.Burst = 1000, 1000
	plain := rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	e := &env{ctx: ctx, ns: *ns, config: config}
	e.typed, err = kubernetes.NewForConfig(config)
	must(err)
	e.dynamic, err = dynamic.NewForConfig(plain)
	must(err)
	parts := map[string]func(*env){"typed": typed, "dynamic": dynamically, "informers": informers, "election": election,
		"streams": streams, "restart": restart}
	part, known := parts[flag.Arg(0)]
	if !known {
		must(fmt.Errorf("no part %q", flag.Arg(0)))
	}
	part(e)
}
