/* What `silica up` says: to programs, and to people. */
#include "cli/up.h"

#include <stdio.h>

void up_add_addresses(const struct up_addresses *a, struct json_out *out)
{
    json_out_key(out, "listen"), json_out_array_begin(out);
    json_out_cstr(out, a->listen);
    json_out_array_end(out);
    json_out_key(out, "router"), json_out_cstr(out, *a->router ? a->router : NULL);
    json_out_key(out, "kubeconfig"), json_out_cstr(out, a->kubeconfig);
}

void up_greet(const struct up_addresses *a, const char *data, bool is_detached)
{
    printf("silica is up: https://%s\n\n", a->listen);
    printf("  kubectl      export KUBECONFIG=%s\n"
           "               kubectl get sandboxtemplates,sandboxwarmpools\n",
           a->kubeconfig);
    if (*a->router)
        printf("  router       %s\n", a->router);
    printf("  Python SDK   pip install k8s-agent-sandbox\n"
           "               from k8s_agent_sandbox import SandboxClient\n"
           "               box = SandboxClient().create_sandbox(\"python-sandbox-pool\")\n");
    if (*a->router)
        printf("               print(box.commands.run(\"echo hello\").stdout)\n");
    printf("  this shell   eval \"$(silica env%s%s)\"\n\n", data ? " --data " : "",
           data ? data : "");
    if (is_detached)
        printf("`silica status` shows it, `silica down` ends it.\n");
    else
        printf("Ctrl-C ends it; what was written is kept.\n");
    (void)fflush(stdout);
}
