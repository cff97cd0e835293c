/* compare: checks whether two runs are the same.
 *
 *   compare metrics NAME A B RELATIVE     the values of a metric in two event files, by step; the
 *                                         steps that both have are compared; there must be some
 *   compare tensors SUFFIX A B RELATIVE   two safetensors files, the tensors whose names end so
 *                                         ("": all): largest difference over largest value, each
 *
 * RELATIVE 0: the same bits. Prints the largest difference; exits with 0 if all are within
 * RELATIVE, else with 1.
 */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static void die(const char *what)
{
    fprintf(stderr, "compare: %s\n", what);
    exit(2);
}

static void read_whole(dt_strbuf *out, const char *path)
{
    dt_error err = DT_ERROR_INIT;

    dt_strbuf_init(out);
    if (dt_file_read(out, path, (size_t)1 << 30, &err) != DT_OK)
        die(err.message);
}

/* step (as text) → value */
static json_t *read_metric(const char *path, const char *name)
{
    json_t *out = json_object();
    dt_strbuf text;
    char *line, *rest;

    read_whole(&text, path);
    for (line = text.data; (rest = strchr(line, '\n')) != NULL; line = rest + 1) {
        json_t *event, *value;
        char step[32];

        *rest = '\0';
        event = json_loads(line, 0, NULL);
        value = json_object_get(json_object_get(event, "values"), name);
        snprintf(step, sizeof(step), "%lld",
                 (long long)json_integer_value(json_object_get(event, "step")));
        if (value != NULL)
            json_object_set(out, step, value);
        json_decref(event);
    }
    dt_strbuf_release(&text);
    return out;
}

static double compare_metrics(const char *name, const char *path_a, const char *path_b)
{
    json_t *a = read_metric(path_a, name), *b = read_metric(path_b, name), *value;
    double worst = 0;
    const char *step;
    int common = 0;

    json_object_foreach(a, step, value) {
        double x = json_number_value(value);
        double y = json_number_value(json_object_get(b, step));

        if (json_object_get(b, step) == NULL)
            continue;
        common++;
        if (!json_is_number(value) || !json_is_number(json_object_get(b, step)))
            die("a value is not a number");
        worst = fmax(worst, fabs(x - y) / fmax(fabs(x), 1e-30));
    }
    if (common == 0)
        die("no step in common");
    printf("%d steps, ", common);
    json_decref(a);
    json_decref(b);
    return worst;
}

typedef struct tensors {
    dt_strbuf file;
    json_t *header;
    const char *data;
} tensors;

static void open_tensors(tensors *out, const char *path)
{
    uint64_t length;

    read_whole(&out->file, path);
    if (out->file.length < sizeof(length))
        die("no safetensors file");
    memcpy(&length, out->file.data, sizeof(length));
    out->header = json_loadb(out->file.data + sizeof(length), (size_t)length, 0, NULL);
    if (out->header == NULL)
        die("no safetensors header");
    out->data = out->file.data + sizeof(length) + length;
}

static size_t offset(const json_t *tensor, size_t which)
{
    return (size_t)json_integer_value(
        json_array_get(json_object_get(tensor, "data_offsets"), which));
}

static double compare_tensor(const tensors *a, const json_t *in_a, const tensors *b,
                             const json_t *in_b)
{
    size_t bytes = offset(in_a, 1) - offset(in_a, 0);
    double largest = 0, difference = 0;

    if (bytes != offset(in_b, 1) - offset(in_b, 0) ||
        strcmp(json_string_value(json_object_get(in_a, "dtype")), "F32") != 0)
        die("tensors of another size or type");
    for (size_t at = 0; at < bytes; at += sizeof(float)) {
        float x, y;

        memcpy(&x, a->data + offset(in_a, 0) + at, sizeof(x));
        memcpy(&y, b->data + offset(in_b, 0) + at, sizeof(y));
        if (!isfinite(x) || !isfinite(y))
            die("a value is not finite");
        largest = fmax(largest, fabs((double)x));
        difference = fmax(difference, fabs((double)x - (double)y));
    }
    return difference / fmax(largest, 1e-30);
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t length = strlen(name), end = strlen(suffix);

    return length >= end && strcmp(name + length - end, suffix) == 0;
}

static double compare_tensors(const char *suffix, const char *path_a, const char *path_b)
{
    double worst = 0;
    const char *name;
    json_t *tensor;
    int common = 0;
    tensors a, b;

    open_tensors(&a, path_a);
    open_tensors(&b, path_b);
    if (json_object_size(a.header) != json_object_size(b.header))
        die("another number of tensors");
    json_object_foreach(a.header, name, tensor) {
        json_t *other = json_object_get(b.header, name);

        if (strcmp(name, "__metadata__") == 0 || !ends_with(name, suffix))
            continue;
        if (other == NULL)
            die("a tensor is missing");
        common++;
        worst = fmax(worst, compare_tensor(&a, tensor, &b, other));
    }
    if (common == 0)
        die("no such tensor");
    printf("%d tensors, ", common);
    json_decref(a.header);
    json_decref(b.header);
    dt_strbuf_release(&a.file);
    dt_strbuf_release(&b.file);
    return worst;
}

int main(int argc, char **argv)
{
    double worst, allowed;

    if (argc != 6)
        die("five arguments: metrics|tensors NAME A B RELATIVE");
    allowed = strtod(argv[5], NULL);
    worst = strcmp(argv[1], "metrics") == 0 ? compare_metrics(argv[2], argv[3], argv[4])
                                            : compare_tensors(argv[2], argv[3], argv[4]);
    printf("largest relative difference %.3g (allowed %g)\n", worst, allowed);
    return worst <= allowed ? 0 : 1;
}
