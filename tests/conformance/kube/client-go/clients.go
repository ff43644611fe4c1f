package main

import (
	"fmt"
	"strings"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/retry"
)

var sandboxes = schema.GroupVersionResource{Group: "agents.x-k8s.io", Version: "v1beta1", Resource: "sandboxes"}

// typed creates, changes and deletes core objects; bodies and DeleteOptions go out as protobuf.
func typed(e *env) {
	maps := e.typed.CoreV1().ConfigMaps(e.ns)
	made, err := maps.Create(e.ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "a", Labels: map[string]string{"x": "y"}},
		Data: map[string]string{"k": "v"}, BinaryData: map[string][]byte{"b": {0, 1, 255}}}, meta.CreateOptions{})
	must(err)
	say("created %s %v %v", made.Name, made.Data, made.BinaryData)
	w, err := maps.Watch(e.ctx, meta.ListOptions{ResourceVersion: made.ResourceVersion, LabelSelector: "x=y"})
	must(err)
	defer w.Stop()

	_, err = maps.Create(e.ctx, made, meta.CreateOptions{})
	say("created with a version: %v", err)
	_, err = maps.Create(e.ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "a"}}, meta.CreateOptions{})
	say("created again: exists %v", errors.IsAlreadyExists(err))
	_, err = maps.Get(e.ctx, "none", meta.GetOptions{})
	say("missing: not found %v: %v", errors.IsNotFound(err), err)
	stale := made.DeepCopy()
	must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now, err := maps.Get(e.ctx, "a", meta.GetOptions{})
		if err != nil {
			return err
		}
		now.Data["k"] = "w"
		_, err = maps.Update(e.ctx, now, meta.UpdateOptions{})
		return err
	}))
	_, err = maps.Update(e.ctx, stale, meta.UpdateOptions{})
	say("stale update: conflict %v", errors.IsConflict(err))
	patched, err := maps.Patch(e.ctx, "a", types.StrategicMergePatchType, []byte(`{"data":{"n":"1"}}`), meta.PatchOptions{})
	must(err)
	say("patched %v", patched.Data)
	applied, err := maps.Apply(e.ctx, coreapply.ConfigMap("b", e.ns).WithData(map[string]string{"k": "v"}), meta.ApplyOptions{FieldManager: "me"})
	must(err)
	say("applied %s by %s", applied.Name, applied.ManagedFields[0].Manager)
	list, err := maps.List(e.ctx, meta.ListOptions{LabelSelector: "x=y"})
	must(err)
	say("listed %d", len(list.Items))
	uid := types.UID("11111111-2222-3333-4444-555555555555")
	err = maps.Delete(e.ctx, "a", meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &uid}})
	say("deleted with another uid: conflict %v", errors.IsConflict(err))
	background := meta.DeletePropagationBackground
	must(maps.Delete(e.ctx, "a", meta.DeleteOptions{PropagationPolicy: &background}))
	for _, want := range []watch.EventType{watch.Modified, watch.Modified, watch.Deleted} {
		event := <-w.ResultChan()
		say("watched %s %s, wanted %s", event.Type, event.Object.(*core.ConfigMap).Name, want)
	}
	must(maps.DeleteCollection(e.ctx, meta.DeleteOptions{}, meta.ListOptions{FieldSelector: "metadata.name=b"}))
	pods(e)
	reviews(e)
}

func pods(e *env) {
	pod := &core.Pod{ObjectMeta: meta.ObjectMeta{GenerateName: "p-"}, Spec: core.PodSpec{Containers: []core.Container{{Name: "main", Image: "x"}}}}
	made, err := e.typed.CoreV1().Pods(e.ns).Create(e.ctx, pod, meta.CreateOptions{})
	must(err)
	say("pod %v %s %s %s", strings.HasPrefix(made.Name, "p-"), made.Status.Phase, made.Spec.RestartPolicy, made.Spec.Containers[0].ImagePullPolicy)
	made.Status.Phase = core.PodRunning
	made.Status.Conditions = []core.PodCondition{{Type: core.PodReady, Status: core.ConditionTrue}}
	made, err = e.typed.CoreV1().Pods(e.ns).UpdateStatus(e.ctx, made, meta.UpdateOptions{})
	must(err)
	say("pod %s", made.Status.Phase)
	_, err = e.typed.CoreV1().Pods(e.ns).Create(e.ctx, &core.Pod{ObjectMeta: meta.ObjectMeta{Name: "bad"}}, meta.CreateOptions{})
	say("invalid pod: %v", errors.IsInvalid(err))
	zero := int64(0)
	must(e.typed.CoreV1().Pods(e.ns).Delete(e.ctx, made.Name, meta.DeleteOptions{GracePeriodSeconds: &zero}))
}

func reviews(e *env) {
	may, err := e.typed.AuthorizationV1().SelfSubjectAccessReviews().Create(e.ctx, &authorization.SelfSubjectAccessReview{
		Spec: authorization.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorization.ResourceAttributes{
			Namespace: e.ns, Verb: "create", Resource: "pods"}}}, meta.CreateOptions{})
	must(err)
	say("may create pods %v", may.Status.Allowed)
	token, err := e.typed.CoreV1().ServiceAccounts(e.ns).CreateToken(e.ctx, "default", &authentication.TokenRequest{}, meta.CreateOptions{})
	must(err)
	review, err := e.typed.AuthenticationV1().TokenReviews().Create(e.ctx, &authentication.TokenReview{
		Spec: authentication.TokenReviewSpec{Token: token.Status.Token}}, meta.CreateOptions{})
	must(err)
	say("token of %s", strings.Replace(review.Status.User.Username, e.ns, "NS", 1))
}

func sandbox(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": map[string]any{"name": name, "labels": map[string]any{"x": "y"}},
		"spec": map[string]any{"podTemplate": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "main", "image": "x"}}}}}}}
}

// dynamically does the same with our own kind and no types.
func dynamically(e *env) {
	boxes := e.dynamic.Resource(sandboxes).Namespace(e.ns)
	made, err := boxes.Create(e.ctx, sandbox("s"), meta.CreateOptions{})
	must(err)
	mode, _, _ := unstructured.NestedString(made.Object, "spec", "operatingMode")
	say("created %s %s generation %d", made.GetName(), mode, made.GetGeneration())
	must(unstructured.SetNestedField(made.Object, "Suspended", "spec", "operatingMode"))
	made, err = boxes.Update(e.ctx, made, meta.UpdateOptions{})
	must(err)
	say("updated to generation %d", made.GetGeneration())
	must(unstructured.SetNestedField(made.Object, "node-1", "status", "nodeName"))
	made, err = boxes.UpdateStatus(e.ctx, made, meta.UpdateOptions{})
	must(err)
	node, _, _ := unstructured.NestedString(made.Object, "status", "nodeName")
	say("status %s generation %d", node, made.GetGeneration())
	made, err = boxes.Patch(e.ctx, "s", types.MergePatchType, []byte(`{"status":{"nodeName":"node-2"}}`), meta.PatchOptions{}, "status")
	must(err)
	node, _, _ = unstructured.NestedString(made.Object, "status", "nodeName")
	say("status %s", node)
	bad := sandbox("bad")
	unstructured.RemoveNestedField(bad.Object, "spec", "podTemplate")
	_, err = boxes.Create(e.ctx, bad, meta.CreateOptions{})
	say("invalid: %v", errors.IsInvalid(err))
	for i := range 5 {
		_, err = boxes.Create(e.ctx, sandbox(fmt.Sprintf("p%d", i)), meta.CreateOptions{})
		must(err)
	}
	page, err := boxes.List(e.ctx, meta.ListOptions{Limit: 4})
	must(err)
	rest, err := boxes.List(e.ctx, meta.ListOptions{Limit: 4, Continue: page.GetContinue()})
	must(err)
	say("pages of %d and %d, %d more said", len(page.Items), len(rest.Items), *page.GetRemainingItemCount())
	applied := sandbox("s")
	applied.SetLabels(map[string]string{"applied": "yes"})
	made, err = boxes.Apply(e.ctx, "s", applied, meta.ApplyOptions{FieldManager: "me", Force: true})
	must(err)
	say("applied, labels %v", made.GetLabels())
	foreground := meta.DeletePropagationForeground
	must(boxes.Delete(e.ctx, "s", meta.DeleteOptions{PropagationPolicy: &foreground}))
	await("s is gone", func() bool { _, err := boxes.Get(e.ctx, "s", meta.GetOptions{}); return errors.IsNotFound(err) })
	must(boxes.DeleteCollection(e.ctx, meta.DeleteOptions{}, meta.ListOptions{LabelSelector: "x=y"}))
	left, err := boxes.List(e.ctx, meta.ListOptions{})
	must(err)
	say("left %d", len(left.Items))
}
