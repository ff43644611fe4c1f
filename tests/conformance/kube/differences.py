"""Where our API server may answer otherwise than kube-apiserver, and why. docs/kubernetes-api.md has the same list.

Rows of (scenario, step, path below the step, reason); scenario and step are shell patterns, the path is dotted with `*`
for every member. A row that nothing needs any more is to be removed.
"""

DIFFERENCES = [
]
