"""Where our API server may answer otherwise than kube-apiserver, and why: one table, for the tests and for the manual.

A row: scenario and step as shell patterns, the path below the step (dotted, `*` for every member; `*` alone for the whole
step), and the reason in a sentence for docs/kubernetes-api.md, which has to hold it (test_differences.py). A row that nothing
needs any more is to be removed.
"""

SCHEME = "Error texts of kube-apiserver name places in its own source (`pkg/runtime/scheme.go`); ours name the kind and version only."
SYNTAX = "What is wrong with malformed JSON, YAML, protobuf or a number in a query is told in our own words, with the place; kube-apiserver gives its decoder's."
FIVE_HUNDRED = "Where kube-apiserver answers 500 to a request that is wrong itself, ours answers 400 or 422."
PROTOBUF = "Bodies may be protobuf, answers are JSON: every client that asks for protobuf takes JSON too."
QUOTAS = "ResourceQuota and LimitRange are not served, so `kubectl describe namespace` does not speak of them."
TAINTS = "A new Node is not tainted `node.kubernetes.io/not-ready`: there is no scheduler that would look at it."
TEXTS = "The schema carries no descriptions, and `kubectl explain` names our types where it says `<Object>` of custom kinds elsewhere."


def rows(scenario, steps, paths, reason):
    return [(scenario, step, path, reason) for step in steps for path in paths]


DIFFERENCES = [
    *rows("objects-bodies", ["another version", "a kind nobody knows"], ["body.message"], SCHEME),
    *rows("delete-answers", ["a body that is not options"], ["body.message"], SCHEME),
    *rows("objects-bodies", ["empty body", "not JSON", "cut short", "an array", "text after the object", "a sandbox that is not JSON"], ["body.message"], SYNTAX),
    *rows("objects-content_types", ["YAML that is not", "protobuf without its prefix", "protobuf cut short"], ["body.message"], SYNTAX),
    *rows("delete-answers", ["a body that is not JSON", "grace that is no number"], ["body.message"], SYNTAX),
    *rows("patch-*", ["no JSON", "not YAML", "not an array", "not an object"], ["body.message"], SYNTAX),
    *rows("lists-*", ["continue that is rubbish", "limit that is no number", "a version that is no number"], ["body.message"], SYNTAX),
    *rows("watch-ends", ["a timeout that is no number"], ["body.message"], SYNTAX),
    *rows("objects-create_refused", ["resourceVersion set"], ["status", "body"], FIVE_HUNDRED),
    *rows("objects-life", ["update with a version that is no number"], ["status", "body"], FIVE_HUNDRED),
    *rows("lists-versions", ["get with a version that is no number"], ["status", "body"], FIVE_HUNDRED),
    *rows("watch-ends", ["a version that is no number"], ["status", "body"], FIVE_HUNDRED),
    *rows("patch-strategic", ["an order that the patch itself does not keep", "without the merge key", "a directive nobody knows"], ["status", "body"], FIVE_HUNDRED),
    *rows("patch-apply_sandboxes", ["unknown field"], ["status", "body"], FIVE_HUNDRED),
    *rows("views-partial", ["one asked for as list"], ["status", "body"], FIVE_HUNDRED),
    *rows("objects-content_types", ["protobuf or JSON"], ["type"], PROTOBUF),
    *rows("kubectl-describe", ["namespace"], ["out"], QUOTAS),
    *rows("kinds-nodes", ["valid *"], ["body.spec"], TAINTS),
    *rows("kubectl-discovery", ["explain*"], ["out"], TEXTS),
]
