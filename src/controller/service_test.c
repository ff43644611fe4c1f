#include "controller/service.h"

#include "controller/testobject.h"
#include "controller/volume.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define HASH  "f60c4582" /* of "s" */
#define TRACK "'agents.x-k8s.io/sandbox-name-hash':'" HASH "'"
#define REF                                                                                        \
    "{'apiVersion':'agents.x-k8s.io/v1beta1','kind':'Sandbox','name':'s','uid':'u1',"              \
    "'controller':true,'blockOwnerDeletion':true}"
#define STRANGER                                                                                   \
    "{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'rs','uid':'r9','controller':true}"
#define META(labels, owners)                                                                       \
    "'metadata':{'namespace':'n','name':'s','uid':'v1','resourceVersion':'7','labels':{" labels    \
    "},'ownerReferences':[" owners "]}"
#define HEADLESS "'clusterIP':'None','selector':{" TRACK "}"
#define PORT(n)  "{'name':'p-" n "-tcp','protocol':'TCP','port':" n ",'targetPort':" n "}"
#define ON_80    "{'containers':[{'ports':[{'containerPort':80}]}]}"

static const struct row {
    const char *name;
    const char *wish; /* spec.service; NULL: unset */
    const char *pod;  /* the spec of the template */
    const char *have;
    const char *step;
    const char *fault;
    bool is_required, exists;
} rows[] = {
    { "creates a headless service", "true", "{}", NULL,
      "create Service n/s {'metadata':{'name':'s','namespace':'n','labels':{" TRACK
      "},'ownerReferences':[" REF "]},'spec':{" HEADLESS "}}",
      NULL, true, true },
    { "creates it with ports", "true", ON_80, NULL,
      "create Service n/s {'metadata':{'name':'s','namespace':'n','labels':{" TRACK
      "},'ownerReferences':[" REF "]},'spec':{" HEADLESS ",'ports':[" PORT("80") "]}}",
      NULL, true, true },
    { "uses its own", "true", ON_80,
      "{" META(TRACK, REF) ",'spec':{" HEADLESS ",'ports':[" PORT("80") "]}}", "", NULL, true,
      true },
    { "repairs selector and label", "true", ON_80,
      "{" META("",
               REF) ",'spec':{'clusterIP':'None','selector':{'app':'x'},'ports':[" PORT("80") "]}}",
      "patch Service n/s {'metadata':{'labels':{" TRACK "}},'spec':{'selector':{'app':null," TRACK
      "}}}",
      NULL, true, true },
    { "repairs ports", "true", ON_80,
      "{" META(TRACK, REF) ",'spec':{" HEADLESS ",'ports':[" PORT("81") "]}}",
      "patch Service n/s {'spec':{'ports':[" PORT("80") "]}}", NULL, true, true },
    { "keeps port fields that are others'", "true", ON_80,
      "{" META(TRACK, REF) ",'spec':{" HEADLESS ",'ports':[{'name':'p-80-tcp','protocol':'TCP',"
                           "'port':80,'targetPort':80,'appProtocol':'h2c'}]}}",
      "", NULL, true, true },
    { "refuses a foreign one", "true", "{}", "{" META(TRACK, STRANGER) ",'spec':{" HEADLESS "}}",
      "", "service \"s\" is owned by ReplicaSet/rs (UID: r9), not by sandbox \"s\"", true, true },
    { "adopts an unowned one", "true", ON_80,
      "{" META("'agents.x-k8s.io/adoptable':'true'", "") ",'spec':{'clusterIP':'None'}}",
      "patch Service n/s {'metadata':{'resourceVersion':'7','ownerReferences':[" REF
      "],'labels':{" TRACK "}},'spec':{'selector':{" TRACK "},'ports':[" PORT("80") "]}}",
      NULL, true, true },
    { "adopts by tracking label and clears ports", "true", "{}",
      "{" META(TRACK, "") ",'spec':{" HEADLESS ",'ports':[" PORT("80") "]}}",
      "patch Service n/s {'metadata':{'resourceVersion':'7','ownerReferences':[" REF
      "]},'spec':{'ports':null}}",
      NULL, true, true },
    { "adopts one without a cluster address and overwrites its selector", "true", "{}",
      "{" META(TRACK, "") ",'spec':{'clusterIP':'','selector':{'app':'x'}}}",
      "patch Service n/s {'metadata':{'resourceVersion':'7','ownerReferences':[" REF
      "]},'spec':{'selector':{'app':null," TRACK "}}}",
      NULL, true, true },
    { "refuses one that is not headless", "true", "{}",
      "{" META(TRACK, "") ",'spec':{'clusterIP':'10.0.0.1'}}", "",
      "service \"s\" is not headless (clusterIP 10.0.0.1): it is not adopted by sandbox \"s\"",
      true, true },
    { "refuses an unowned one without authorisation", "true", "{}",
      "{" META("", "") ",'spec':{'clusterIP':'None'}}", "",
      "service \"s\" exists, is not owned by sandbox \"s\", and is not labelled "
      "agents.x-k8s.io/adoptable=true: it is not adopted",
      true, true },
    { "unset: creates none", NULL, ON_80, NULL, "", NULL, false, false },
    { "unset: keeps its own, repairs label and selector, not ports", NULL, ON_80,
      "{" META("", REF) ",'spec':{'clusterIP':'None','ports':[" PORT("81") "]}}",
      "patch Service n/s {'metadata':{'labels':{" TRACK "}},'spec':{'selector':{" TRACK "}}}", NULL,
      true, true },
    { "unset: ignores an unowned one", NULL, ON_80,
      "{" META(TRACK, "") ",'spec':{'clusterIP':'None'}}", "", NULL, false, false },
    { "unset: refuses a foreign one", NULL, "{}",
      "{" META(TRACK, STRANGER) ",'spec':{" HEADLESS "}}", "",
      "service \"s\" is owned by ReplicaSet/rs (UID: r9), not by sandbox \"s\"", false, false },
    { "false: deletes its own", "false", ON_80, "{" META(TRACK, REF) ",'spec':{}}",
      "delete Service n/s uid=v1", NULL, false, false },
    { "false: ignores an unowned one", "false", ON_80, "{" META(TRACK, "") ",'spec':{}}", "", NULL,
      false, false },
    { "false: ignores a foreign one", "false", ON_80, "{" META(TRACK, STRANGER) ",'spec':{}}", "",
      NULL, false, false },
};

static void reconcile_service(void **state)
{
    const struct known_kinds *k = known_kinds();

    EACH(r, rows) {
        struct object *sandbox =
            test_object(k->sandbox,
                        "{'metadata':{'namespace':'n','name':'s','uid':'u1'},'spec':{'podTemplate':"
                        "{'spec':%s}%s%s}}",
                        r->pod, r->wish ? ",'service':" : "", r->wish ? r->wish : "");
        struct object *have = r->have ? test_object(k->service, "%s", r->have) : NULL;
        struct service_verdict got;
        struct err e = { 0 };
        int rc = service_decide(sandbox, have, test_edit(), &got, &e);

        test_same(r->name, "fault", rc < 0 ? e.msg : NULL, r->fault);
        if (rc < 0)
            continue;
        test_same(r->name, "step", test_step(&got.step), r->step);
        if (got.is_required != r->is_required || got.exists != r->exists ||
            got.is_shown != r->exists)
            fail_msg("%s: required %d, exists %d, shown %d", r->name, got.is_required, got.exists,
                     got.is_shown);
    }
    test_objects_free();
}

static void service_ports_of_a_pod(void **state)
{
    static const struct {
        const char *name, *pod, *want;
    } cases[] = {
        { "nothing without container ports", "{'containers':[{'name':'c'}]}", "" },
        { "port 0 is skipped", "{'containers':[{'ports':[{'containerPort':0}]}]}", "" },
        { "native sidecars count, other init containers do not",
          "{'containers':[{}],'initContainers':[{'restartPolicy':'Always','ports':[{'containerPort'"
          ":9}]},{'ports':[{'containerPort':10}]}]}",
          "[" PORT("9") "]" },
        { "sorted, once each, named by the first explicit name",
          "{'containers':[{'ports':[{'containerPort':80},{'containerPort':53,'protocol':'UDP'},{"
          "'containerPort':53}]},{'ports':[{'containerPort':80,'name':'http'},{'containerPort':80,"
          "'name':'web'}]}]}",
          "[{'name':'p-53-tcp','protocol':'TCP','port':53,'targetPort':53},{'name':'p-53-udp',"
          "'protocol':'UDP','port':53,'targetPort':53},{'name':'http','protocol':'TCP','port':80,"
          "'targetPort':80}]" },
        { "of a duplicate explicit name the first keeps it",
          "{'containers':[{'ports':[{'containerPort':90,'name':'http'}]},{'ports':[{"
          "'containerPort':80,'name':'http'}]}]}",
          "[" PORT("80") ",{'name':'http','protocol':'TCP','port':90,'targetPort':90}]" },
        { "a made name gives way to an explicit one",
          "{'containers':[{'ports':[{'containerPort':8080},{'containerPort':9,'name':'p-8080-tcp'}]"
          "}]}",
          "[{'name':'p-8080-tcp','protocol':'TCP','port':9,'targetPort':9},{'name':'p-8080-tcp-2',"
          "'protocol':'TCP','port':8080,'targetPort':8080}]" },
    };

    EACH(r, cases) {
        struct object *pod = test_object(known_kinds()->pod, "{'spec':%s}", r->pod);

        test_same(r->name, "list",
                  test_text(service_ports(test_edit(), object_member(pod, "spec"))), r->want);
    }
    test_objects_free();
}

#define CLAIM(labels, owners)                                                                      \
    "{'metadata':{'namespace':'n','name':'data-s','resourceVersion':'7','labels':{" labels         \
    "},'ownerReferences':[" owners "]}}"

static void reconcile_volume_claims(void **state)
{
    static const struct {
        const char *name, *have, *step, *fault;
    } cases[] = {
        { "creates it", NULL,
          "create PersistentVolumeClaim n/data-s {'metadata':{'name':'data-s','namespace':'n',"
          "'annotations':{'a':'1'},'labels':{'l':'1'," TRACK "},'ownerReferences':[" REF
          "]},'spec':{'accessModes':['ReadWriteOnce']}}",
          NULL },
        { "uses its own", CLAIM("", REF), "", NULL },
        { "refuses a foreign one", CLAIM(TRACK, STRANGER), NULL,
          "PVC \"data-s\" is owned by ReplicaSet/rs (UID: r9), not by sandbox \"s\"" },
        { "adopts an adoptable one", CLAIM("'agents.x-k8s.io/adoptable':'true'", ""),
          "patch PersistentVolumeClaim n/data-s {'metadata':{'resourceVersion':'7',"
          "'ownerReferences':[" REF "]}}",
          NULL },
        { "adopts by tracking label", CLAIM(TRACK, ""),
          "patch PersistentVolumeClaim n/data-s {'metadata':{'resourceVersion':'7',"
          "'ownerReferences':[" REF "]}}",
          NULL },
        { "refuses an unauthorised one", CLAIM("'agents.x-k8s.io/adoptable':'yes'", ""), NULL,
          "PVC \"data-s\" exists, is not owned by sandbox \"s\", and is not labelled "
          "agents.x-k8s.io/adoptable=true: it is not adopted" },
    };
    const struct known_kinds *k = known_kinds();
    struct object *sandbox =
        test_object(k->sandbox, "{'metadata':{'namespace':'n','name':'s','uid':'u1'},'spec':{"
                                "'volumeClaimTemplates':[{'metadata':{'name':'data','labels':{'l':"
                                "'1'},'annotations':{'a':'1'}},'spec':{'accessModes':["
                                "'ReadWriteOnce']}}]}}");
    const struct json *template = json_at(object_at(sandbox, "spec.volumeClaimTemplates"), 0);

    EACH(r, cases) {
        struct object *have = r->have ? test_object(k->volume_claim, "%s", r->have) : NULL;
        struct step step;
        struct err e;
        int rc = volume_decide(sandbox, template, have, test_edit(), &step, &e);

        test_same(r->name, "fault", rc < 0 ? e.msg : NULL, r->fault);
        test_same(r->name, "step", rc < 0 ? NULL : test_step(&step), r->step);
    }
    test_objects_free();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(reconcile_service),
        cmocka_unit_test(service_ports_of_a_pod),
        cmocka_unit_test(reconcile_volume_claims),
    };

    return cmocka_run_group_tests_name("controller/service", tests, NULL, NULL);
}
