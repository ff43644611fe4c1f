"""What tests and the bench share beyond the runtime's harness: whole Kubernetes APIs to speak to."""
