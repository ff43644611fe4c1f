#include "node/served.h"

#include "node/testpod.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TYPES_MAX 128

/* Types that a Pod is made of, as far as they are served. */
static const struct schema_type *seen[TYPES_MAX];
static size_t seen_count, missing;

static void visit(const struct schema_type *type)
{
    for (size_t i = 0; i < seen_count; i++)
        if (seen[i] == type)
            return;
    assert_true(seen_count < TYPES_MAX);
    seen[seen_count++] = type;
    for (size_t i = 0; i < type->field_count; i++) {
        const struct schema_field *f = &type->fields[i];
        enum served how = served_judge(type, f);

        if (how == SERVED_UNSAID) {
            print_error("served.c says nothing, or two things, of %s.%s\n", type->name, f->name);
            missing++;
        }
        if (how == SERVED_YES && f->ref)
            visit(f->ref);
    }
}

/* A member that comes into the types must be judged before this passes again. */
static void every_field_is_judged(void **state)
{
    (void)state;
    visit(schema_type("core/v1", "PodSpec"));
    assert_int_equal(missing, 0);
    assert_true(seen_count > 40); /* the walk went into them */
}

static const struct row {
    const char *name;
    const char *spec; /* of the Pod */
    const char *want; /* all notes, '|' between */
} rows[] = {
    { "nothing", "{'hostNetwork':false,'restartPolicy':'Never','dnsPolicy':'ClusterFirst'}", "" },
    { "servers of names, without a way to them",
      "{'dnsPolicy':'None','dnsConfig':{'nameservers':['8.8.8.8']}}", "" },
    { "all is dropped already",
      "{'securityContext':{'seccompProfile':{'type':'RuntimeDefault'}},'containers':[{'name':'c',"
      "'terminationMessagePath':'/dev/termination-log','terminationMessagePolicy':'File',"
      "'ports':[{'containerPort':1,'protocol':'TCP'}],"
      "'securityContext':{'capabilities':{'drop':['ALL']},'allowPrivilegeEscalation':false,"
      "'privileged':false}}]}",
      "" },
    { "of the Pod",
      "{'hostNetwork':true,'runtimeClassName':'gvisor','subdomain':'s','os':{'name':'windows'},"
      "'securityContext':{'sysctls':[{'name':'a','value':'b'}]}}",
      "not served here, and left out: hostNetwork, runtimeClassName, subdomain, os.name windows, "
      "securityContext.sysctls" },
    { "of containers",
      "{'containers':[{'name':'c','ports':[{'containerPort':1,'hostPort':80},{'containerPort':2,"
      "'hostPort':81}],'securityContext':{'privileged':true,'capabilities':{'add':['NET_ADMIN']},"
      "'procMount':'Unmasked'}}]}",
      "container \"c\": not served here, and left out: ports.hostPort, securityContext.privileged, "
      "securityContext.capabilities.add, securityContext.procMount Unmasked" },
    { "of both, init containers too",
      "{'nodeSelector':{'a':'b'},'initContainers':[{'name':'i','tty':true}],'containers':[{'name':'c',"
      "'livenessProbe':{'httpGet':{'host':'10.0.0.1','port':1}}}]}",
      "not served here, and left out: nodeSelector|container \"i\": not served here, and left out: "
      "tty|container \"c\": not served here, and left out: livenessProbe.httpGet.host" },
};

static void what_is_noted(void **state)
{
    (void)state;
    EACH(r, rows) {
        OWN(notes_done) struct notes notes = { 0 };
        OWN(buf_done) struct buf got = BUF_INIT(4096);
        OWN_MEM char *text = NULL;

        assert_true(asprintf(&text, "{'metadata':{},'spec':%s}", r->spec) > 0);
        served_note(testpod_object("pods", text), &notes);
        for (size_t i = 0; i < notes.n; i++) {
            assert_string_equal(notes.v[i].reason, "FieldNotServed");
            (void)buf_add_capped(&got, span_cstr(i ? "|" : ""));
            (void)buf_add_capped(&got, span_cstr(notes.v[i].message));
        }
        if (strcmp(buf_cstr(&got), r->want) != 0)
            fail_msg("%s: '%s', not '%s'", r->name, buf_cstr(&got), r->want);
        testpod_free();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_field_is_judged),
                                        cmocka_unit_test(what_is_noted) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
