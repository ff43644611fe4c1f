#include "apiserver/accept.h"

/* What follows the type: which form, and whether that form is known in the version asked for. */
static bool read_parameters(struct span rest, enum call_form *ret)
{
    bool is_known = true, is_v1 = true;
    struct span part;

    *ret = FORM_OBJECT;
    while (span_cut(&rest, ';', &part)) {
        part = span_trim(part);
        if (span_is(part, "as=Table"))
            *ret = FORM_TABLE;
        else if (span_is(part, "as=PartialObjectMetadata"))
            *ret = FORM_PARTIAL;
        else if (span_is(part, "as=PartialObjectMetadataList"))
            *ret = FORM_PARTIAL_LIST;
        else if (span_starts(part, "as="))
            is_known = false;
        else if (span_starts(part, "v="))
            is_v1 = span_is(part, "v=v1") || span_is(part, "v=v1beta1");
    }
    return is_known && (is_v1 || *ret == FORM_OBJECT);
}

bool accept_read(struct span field, struct accept *ret)
{
    struct span one, type;

    *ret = (struct accept){ .form = FORM_OBJECT };
    if (!field.n)
        return true;
    while (span_cut(&field, ',', &one)) {
        bool is_yaml;

        if (!span_cut(&one, ';', &type))
            continue;
        type = span_trim(type);
        is_yaml = span_is_nocase(type, "application/yaml");
        if (!is_yaml && !span_is_nocase(type, "application/json") && !span_is(type, "*/*") &&
            !span_is(type, "application/*"))
            continue;
        ret->is_type_known = true;
        if (read_parameters(one, &ret->form)) {
            ret->is_yaml = is_yaml;
            return true;
        }
    }
    ret->form = FORM_OBJECT;
    return false;
}

bool accept_names(struct span field, const char *type)
{
    struct span one, name;

    while (span_cut(&field, ',', &one))
        if (span_cut(&one, ';', &name) && span_is_nocase(span_trim(name), type))
            return true;
    return false;
}
