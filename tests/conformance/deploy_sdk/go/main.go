// The public Go SDK through the life of a sandbox: create, get, list, suspend, resume, delete. Prints one word for each step
// that held. usage: go-sdk-life ROUTER-URL POOL (and KUBECONFIG)
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/agent-sandbox/clients/go/sandbox"
	"sigs.k8s.io/agent-sandbox/clients/k8s/clientset/versioned"
)

const namespace = "default"

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// setMode is how a Sandbox is suspended: the SDK has no call of its own for it, the module's clientset has the type.
func setMode(ctx context.Context, k *versioned.Clientset, name, mode, ready string) {
	patch := []byte(`{"spec":{"operatingMode":"` + mode + `"}}`)
	_, err := k.AgentsV1beta1().Sandboxes(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	must(err)
	for {
		box, err := k.AgentsV1beta1().Sandboxes(namespace).Get(ctx, name, metav1.GetOptions{})
		must(err)
		for _, c := range box.Status.Conditions {
			if c.Type == "Ready" && string(c.Status) == ready {
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(err)
	k, err := versioned.NewForConfig(config)
	must(err)
	client, err := sandbox.NewClient(ctx, sandbox.Options{Namespace: namespace, APIURL: os.Args[1]})
	must(err)
	box, err := client.CreateSandbox(ctx, os.Args[2], namespace)
	must(err)
	must(box.Write(ctx, "note", []byte("kept")))
	fmt.Println("created")

	again, err := client.GetSandbox(ctx, box.ClaimName(), namespace)
	must(err)
	told, err := again.Run(ctx, "cat note")
	must(err)
	fmt.Println("got", told.Stdout)

	names, err := client.ListAllSandboxes(ctx, namespace)
	must(err)
	fmt.Println("listed", slices.Contains(names, box.ClaimName()))

	name := box.SandboxName()
	setMode(ctx, k, name, "Suspended", "False")
	fmt.Println("suspended")
	setMode(ctx, k, name, "Running", "True")
	must(again.Disconnect(ctx))
	back, err := client.GetSandbox(ctx, box.ClaimName(), namespace)
	must(err)
	told, err = back.Run(ctx, "echo awake")
	must(err)
	fmt.Println("resumed", told.Stdout)

	claim := box.ClaimName()
	must(client.DeleteSandbox(ctx, claim, namespace))
	names, err = client.ListAllSandboxes(ctx, namespace)
	must(err)
	fmt.Println("deleted", !slices.Contains(names, claim))
}
