package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/dynamicinformer"
	clientfeatures "k8s.io/client-go/features"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

type counts struct{ added, updated, deleted atomic.Int64 }

func (c *counts) on(informer cache.SharedIndexInformer) cache.ResourceEventHandlerRegistration {
	done, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { c.added.Add(1) }, UpdateFunc: func(_, _ any) { c.updated.Add(1) }, DeleteFunc: func(any) { c.deleted.Add(1) }})
	must(err)
	return done
}

// informers fills two caches, of a core kind and of ours, from what was there before and what comes after.
func informers(e *env) {
	say("watch-list %v", clientfeatures.FeatureGates().Enabled(clientfeatures.WatchListClient))
	maps := e.typed.CoreV1().ConfigMaps(e.ns)
	boxes := e.dynamic.Resource(sandboxes).Namespace(e.ns)
	label := func(o *meta.ListOptions) { o.LabelSelector = "x=y" }
	for i := range 3 {
		_, err := maps.Create(e.ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: fmt.Sprintf("c%d", i), Labels: map[string]string{"x": "y"}}}, meta.CreateOptions{})
		must(err)
		_, err = boxes.Create(e.ctx, sandbox(fmt.Sprintf("s%d", i)), meta.CreateOptions{})
		must(err)
	}
	stop := make(chan struct{})
	defer close(stop)
	factory := kubeinformers.NewSharedInformerFactoryWithOptions(e.typed, 0, kubeinformers.WithNamespace(e.ns), kubeinformers.WithTweakListOptions(label))
	ours := dynamicinformer.NewFilteredDynamicSharedInformerFactory(e.dynamic, 0, e.ns, label)
	core, own := factory.Core().V1().ConfigMaps(), ours.ForResource(sandboxes)
	var ofCore, ofOurs counts
	first, second := ofCore.on(core.Informer()), ofOurs.on(own.Informer())
	factory.Start(stop)
	ours.Start(stop)
	if !cache.WaitForCacheSync(e.ctx.Done(), first.HasSynced, second.HasSynced) {
		must(fmt.Errorf("the caches did not fill"))
	}
	say("filled %d %d", ofCore.added.Load(), ofOurs.added.Load())

	one, err := maps.Get(e.ctx, "c0", meta.GetOptions{})
	must(err)
	one.Data = map[string]string{"k": "v"}
	_, err = maps.Update(e.ctx, one, meta.UpdateOptions{})
	must(err)
	must(maps.Delete(e.ctx, "c1", meta.DeleteOptions{}))
	_, err = boxes.Create(e.ctx, sandbox("s3"), meta.CreateOptions{})
	must(err)
	must(boxes.Delete(e.ctx, "s0", meta.DeleteOptions{}))
	await("every event", func() bool {
		return ofCore.updated.Load() == 1 && ofCore.deleted.Load() == 1 && ofOurs.added.Load() == 4 && ofOurs.deleted.Load() == 1
	})
	all, err := core.Lister().ConfigMaps(e.ns).List(labels.Everything())
	must(err)
	say("cache holds %d", len(all))
	cached, err := core.Lister().ConfigMaps(e.ns).Get("c0")
	must(err)
	say("c0 has %v", cached.Data)
	keys, err := own.Informer().GetIndexer().IndexKeys(cache.NamespaceIndex, e.ns)
	must(err)
	say("index holds %d", len(keys))
}

// restart tells of every object that comes into the cache until its input ends, and how often the cache was filled anew.
func restart(e *env) {
	boxes := e.dynamic.Resource(sandboxes).Namespace(e.ns)
	var lists atomic.Int64
	counted := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o meta.ListOptions) (runtime.Object, error) {
			lists.Add(1)
			return boxes.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o meta.ListOptions) (watch.Interface, error) {
			if o.SendInitialEvents != nil && *o.SendInitialEvents {
				lists.Add(1)
			}
			return boxes.Watch(ctx, o)
		}}, e.dynamic)
	informer := cache.NewSharedIndexInformer(counted, &unstructured.Unstructured{}, 0, cache.Indexers{})
	synced, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { say("added %s", o.(*unstructured.Unstructured).GetName()) }})
	must(err)
	go informer.Run(e.ctx.Done())
	if !cache.WaitForCacheSync(e.ctx.Done(), synced.HasSynced) {
		must(fmt.Errorf("the cache did not fill"))
	}
	say("synced %d", len(informer.GetStore().List()))
	_, _ = io.Copy(io.Discard, os.Stdin)
	say("%d list", lists.Load())
}

// election: the first candidate leads, gives the lease back, and the second takes it.
func election(e *env) {
	lead := func(name string) {
		ctx, cancel := context.WithCancel(e.ctx)
		defer cancel()
		lock := &resourcelock.LeaseLock{LeaseMeta: meta.ObjectMeta{Name: "leader", Namespace: e.ns}, Client: e.typed.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name}}
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					now, err := e.typed.CoordinationV1().Leases(e.ns).Get(ctx, "leader", meta.GetOptions{})
					must(err)
					say("%s leads: holder %s, %d transitions", name, *now.Spec.HolderIdentity, *now.Spec.LeaseTransitions)
					time.Sleep(500 * time.Millisecond) // some renewals
					cancel()
				},
				OnStoppedLeading: func() { say("%s ends", name) }}})
	}
	lead("one")
	lead("two")
}
