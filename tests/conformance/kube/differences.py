"""Where our API server may answer otherwise than kube-apiserver, and why: one table, for the tests and for the manual.

A row: scenario and step as shell patterns, the path below the step (dotted, `*` for every member; `*` alone for the whole
step), and the reason in a sentence for docs/kubernetes-api.md, which has to hold it (test_differences.py). A row that nothing
needs any more is to be removed.
"""

SCHEME = "Error texts of kube-apiserver name places in its own source (`pkg/runtime/scheme.go`); ours name the kind and version only."
SYNTAX = "What is wrong with malformed JSON, YAML, protobuf or a number in a query is told in our own words, with the place; kube-apiserver gives its decoder's."
SENSELESS = "A strategic merge patch that makes no sense is the client's fault, so 400 or 422; kube-apiserver answers 500."
PATCHED = "Where a patch makes no valid object, the object in the refusal has its members in our order."
GO_NAMES = "Objects shown in refusals have the names of the API; kube-apiserver shows its internal ones, and of a Pod a comparison in them."
ETCD = "Texts of kube-apiserver name keys in etcd; ours have none."
ORDER = "Members of an object stand in the order in which they were sent and set; kube-apiserver has an order of its own."
OTHER_KIND = "A body of a custom resource that says it is another kind is refused in the name of the kind that its path has."
PLACE = "Refusals of a custom resource's status name a field by its whole path in every sentence."
PROTOBUF = "Bodies may be protobuf, answers are JSON: every client that asks for protobuf takes JSON too."
LIMIT_RANGES = "LimitRange is not served, so `kubectl describe namespace` does not speak of it."
TAINTS = "A new Node is not tainted `node.kubernetes.io/not-ready`: there is no scheduler that would look at it."
TEXTS = "The schema carries no descriptions, and `kubectl explain` names our types where it says `<Object>` of custom kinds elsewhere."

WEBSOCKET = "Whoever may get but not create `pods/exec` is told what is missing; kube-apiserver leaves the reason empty."
ALPHA = "Our kinds are served in v1alpha1 too; the definitions that the real server has know v1beta1 alone."


def rows(scenario, steps, paths, reason):
    return [(scenario, step, path, reason) for step in steps for path in paths]


DIFFERENCES = [
    *rows("objects-bodies", ["another version", "a kind nobody knows"], ["body.message"], SCHEME),
    *rows("delete-answers", ["a body that is not options"], ["body.message"], SCHEME),
    *rows("objects-bodies", ["empty body", "not JSON", "cut short", "an array", "text after the object", "a sandbox that is not JSON"], ["body.message"], SYNTAX),
    *rows("objects-content_types", ["YAML that is not", "protobuf without its prefix", "protobuf cut short"], ["body.message"], SYNTAX),
    *rows("delete-answers", ["a body that is not JSON", "grace that is no number"], ["body.message"], SYNTAX),
    *rows("patch-*", ["no JSON", "not YAML", "not an array", "not an object"], ["body.message"], SYNTAX),
    *rows("subresources-streams", ["a log since yesterday"], ["body.message"], SYNTAX),
    *rows("access-streams", ["GET exec with get"], ["value.*.message"], WEBSOCKET),
    *rows("lists-*", ["continue that is rubbish", "limit that is no number", "a version that is no number"], ["body.message"], SYNTAX),
    *rows("watch-ends", ["a timeout that is no number"], ["body.message"], SYNTAX),
    *rows("patch-strategic", ["an order that the patch itself does not keep", "without the merge key", "a directive nobody knows"], ["status", "body"], SENSELESS),
    *rows("patch-merge", ["a value of the wrong type"], ["body.message", "body.details.causes.*.message"], PATCHED),
    *rows("objects-field_validation", ["patch, Strict"], ["body.message", "body.details.causes.*.message"], PATCHED),
    *rows("access-escalation", ["not even by update"], ["body.message", "body.details.causes.*.message"], GO_NAMES),
    *rows("kinds-pods", ["valid * again"], ["body.message", "body.details.causes.*.message"], GO_NAMES),
    *rows("objects-life", ["update with another uid"], ["body.message"], ETCD),
    *rows("delete-owners", ["the object stays", "the other owner"], ["body.metadata.uid", "body.metadata.ownerReferences.*.uid", "body.details.uid"], ORDER),
    *rows("objects-bodies", ["a sandbox of another kind"], ["body.message", "body.details.kind"], OTHER_KIND),
    *rows("objects-bodies", ["another kind"], ["body.message"], SCHEME),
    *rows("objects-bodies", ["a sandbox without kind and version"], ["body.message"], SYNTAX),
    *rows("objects-content_types", ["accept what nobody makes"], ["body.message"], PROTOBUF),
    *rows("subresources-status", ["of the wrong type"], ["body.message", "body.details.causes.*.message"], PLACE),
    *rows("delete-options", ["a list*", "a number for a uid*"], ["body.message"], SYNTAX),
    *rows("subresources-scale", ["a list"], ["body.message"], SYNTAX),
    *rows("subresources-scale", ["a text for a number, *"], ["body.message", "body.details.causes.*.message"], PATCHED),
    *rows("subresources-pods", ["evict with a list"], ["body.message"], SYNTAX),
    *rows("subresources-scale", ["*as a table"], ["body.columnDefinitions.*.description"], TEXTS),
    *rows("views-partial", ["watch as table"], ["events.*.object.columnDefinitions.*.description"], TEXTS),
    *rows("objects-content_types", ["protobuf or JSON"], ["type"], PROTOBUF),
    *rows("discovery-openapi", ["version 2"], ["value"], ALPHA),
    *rows("kubectl-describe", ["namespace"], ["out"], LIMIT_RANGES),
    *rows("kinds-nodes", ["valid *"], ["body.spec"], TAINTS),
    *rows("kubectl-discovery", ["explain*"], ["out"], TEXTS),
]
