#include "controller/fields.h"

#include "controller/testobject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define LOCK "patch SandboxClaim n/c {'metadata':{'resourceVersion':'7'"

static const struct row {
    const char *name, *managed; /* of an object; "": it has none */
    const char *want;           /* the patch */
    bool is_kept;               /* in copies */
} rows[] = {
    { "none are taken, and none are to be", "", LOCK ",'managedFields':[{}]}}", false },
    { "its maker's", ",'managedFields':[{'manager':'kubectl-create','operation':'Update'}]",
      LOCK ",'managedFields':[{}]}}", false },
    { "somebody applies it",
      ",'managedFields':[{'manager':'m','operation':'Update'},{'manager':'flux','operation':'Apply'}]",
      LOCK "}}", true },
    { "a status that is applied",
      ",'managedFields':[{'manager':'m','operation':'Apply','subresource':'status'}]", LOCK "}}",
      true },
    { "nonsense", ",'managedFields':['Apply',{'operation':7},null]", LOCK ",'managedFields':[{}]}}",
      false },
};

static void test_rows(void **state)
{
    (void)state;
    EACH(r, rows) {
        struct object *o = test_object(
            known_kinds()->claim,
            "{'metadata':{'namespace':'n','name':'c','resourceVersion':'7'%s},'spec':{}}",
            r->managed);
        struct step step = step_patch_locked(test_edit(), o);
        struct object *less = test_keep(fields_trim(o));

        fields_forget(&step, o);
        test_same(r->name, "the patch", test_step(&step), r->want);
        if ((json_get(object_meta(less), "managedFields") != NULL) != r->is_kept)
            fail_msg("%s: the copy %s them", r->name, r->is_kept ? "lacks" : "has");
    }
}

static int end(void **state)
{
    (void)state;
    test_objects_free();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows) };

    return cmocka_run_group_tests(tests, NULL, end);
}
