/* checkpoint: what any layout of any number of ranks saved can be loaded by any other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "checkpoint_support.h"
#include "engine/checkpoint/digest.h"

static dt_checkpoint *open_one(const fake_world *world, const char *name)
{
    dt_error err = DT_ERROR_INIT;
    dt_checkpoint *checkpoint;
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", world->parent, name);
    if (dt_checkpoint_open(&checkpoint, path, &err) != DT_OK)
        fail_msg("%s", err.message);
    return checkpoint;
}

static void test_any_layout_loads_from_any_layout(void **state)
{
    for (int saved = 0; saved < FAKE_LAYOUTS * 3; saved++) {
        fake_world world;

        fake_world_init(&world, *state);
        world.layout = saved / 3;
        world.ranks = saved % 3 + 1;
        world.info.step = saved;
        fake_must_save(&world);
        for (int loaded = 0; loaded < FAKE_LAYOUTS * 3; loaded++) {
            world.layout = loaded / 3;
            world.ranks = loaded % 3 + 1;
            fake_must_load(&world);
        }
        fake_world_release(&world);
    }
}

/* Meshes of four ranks with rows of one, two and four; and stripes of whole parameters. */
static void set_mesh(fake_world *world, int which)
{
    world->layout = which == 6 ? FAKE_STRIPES : FAKE_DDP + which % 2;
    world->tensor_size = which == 6 ? 1 : 1 << which / 2;
}

static void test_any_mesh_loads_from_any_mesh(void **state)
{
    fake_world world;

    fake_world_init(&world, *state);
    world.ranks = 4;
    for (int saved = 0; saved < 7; saved++) {
        set_mesh(&world, saved);
        world.info.step = saved;
        fake_must_save(&world);
        for (int loaded = 0; loaded < 7; loaded++) {
            set_mesh(&world, loaded);
            fake_must_load(&world);
        }
    }
    fake_world_release(&world);
}

/* Columns of "wpe.weight" (8, 3), and the elements of them that a data rank holds. */
static void test_a_box_keeps_its_dimensions(void **state)
{
    fake_world world;
    dt_checkpoint *checkpoint;
    dt_checkpoint_part *part;
    int64_t start, elems;

    fake_world_init(&world, *state);
    world.ranks = world.tensor_size = 2;
    world.layout = FAKE_DDP;
    fake_must_save(&world);
    checkpoint = open_one(&world, "step-00000100");
    assert_int_equal(checkpoint->index.file_count, 4);
    assert_int_equal(dt_checkpoint_use_part(&part, checkpoint, 2, NULL), DT_OK);
    assert_true(dt_safetensors_find(&start, &elems, &part->header, "wpe.weight[0:8,1:3]"));
    assert_int_equal(elems, 16);
    assert_string_equal(json_string_value(json_object_get(
                            json_object_get(part->header.header, "wpe.weight[0:8,1:3]"), "dtype")),
                        "F32");
    assert_int_equal(json_array_size(json_object_get(
                         json_object_get(part->header.header, "wpe.weight[0:8,1:3]"), "shape")),
                     2);
    assert_false(dt_safetensors_find(&start, &elems, &part->header, "ln_f.bias"));
    dt_checkpoint_close(checkpoint);

    world.ranks = 4;
    world.layout = FAKE_FSDP;
    fake_must_save(&world);
    checkpoint = open_one(&world, "step-00000100-2");
    assert_int_equal(dt_checkpoint_use_part(&part, checkpoint, 6, NULL), DT_OK);
    assert_true(dt_safetensors_find(&start, &elems, &part->header, "wpe.weight[0:8,1:3][8:16]"));
    assert_int_equal(elems, 8);
    dt_checkpoint_close(checkpoint);
    fake_world_release(&world);
}

static dt_status load_own_alone(fake_world *world, dt_strategy_state *state, dt_error *err)
{
    dt_checkpoint *checkpoint = NULL;
    dt_status st = DT_OK;
    char path[256];
    int64_t read = 0;

    snprintf(path, sizeof(path), "%s/step-00000100", world->parent);
    DT_TRY(dt_checkpoint_open(&checkpoint, path, err));
    DT_TRY(dt_checkpoint_load(checkpoint, state, err));
    for (int64_t i = 0; i < checkpoint->index.file_count; i++)
        read += checkpoint->parts[i].fd >= 0;
    /* its own two files, and those of the first rank of its row, with parameters that all ranks of a row hold */
    if (read > (state->mesh.axis[DT_AXIS_TENSOR].rank == 0 ? 2 : 4))
        DT_THROW(err, DT_ERR_CORRUPT, "it has read %d of 8 files", (int)read);
out:
    dt_checkpoint_close(checkpoint);
    return st;
}

static void test_a_rank_reads_the_files_of_what_it_holds(void **state)
{
    fake_world world;

    fake_world_init(&world, *state);
    world.ranks = 4;
    world.tensor_size = 2;
    world.layout = FAKE_FSDP;
    fake_must_save(&world);
    if (fake_world_run(&world, load_own_alone) != DT_OK)
        for (int rank = 0; rank < 4; rank++)
            print_error("rank %d: %s\n", rank, world.err[rank].message);
    for (int rank = 0; rank < 4; rank++)
        assert_int_equal(world.st[rank], DT_OK);
    fake_world_release(&world);
}

static void test_any_padding_loads_from_any_padding(void **state)
{
    static const int64_t padded[] = {FAKE_VOCAB, FAKE_PADDED, 16};
    fake_world world;

    fake_world_init(&world, *state);
    for (int saved = 0; saved < 6; saved++) {
        world.padded = padded[saved % 3];
        world.ranks = 2;
        world.layout = saved < 3 ? FAKE_STRIPES : FAKE_FSDP;
        world.tensor_size = saved < 3 ? 1 : 2;
        world.info.step = saved;
        fake_must_save(&world);
        for (int loaded = 0; loaded < 3; loaded++) {
            world.padded = padded[loaded];
            world.ranks = 3;
            world.tensor_size = saved < 3 ? 1 : 3;
            fake_must_load(&world);
        }
    }
    fake_world_release(&world);
}

static void test_every_rank_gets_the_same_description(void **state)
{
    fake_world world;
    dt_checkpoint *checkpoint;
    const dt_checkpoint_info *info;
    dt_strbuf index;
    char path[256], digest[DT_DIGEST_SIZE];
    int64_t bytes;

    fake_world_init(&world, *state);
    world.ranks = 3;
    world.layout = FAKE_FLAT;
    fake_must_save(&world);
    for (int rank = 0; rank < 3; rank++) {
        assert_string_equal(world.saved[rank].directory, "step-00000100");
        assert_string_equal(world.saved[rank].digest, world.saved[0].digest);
        assert_int_equal(world.saved[rank].bytes, world.saved[0].bytes);
    }
    checkpoint = open_one(&world, "step-00000100");
    info = dt_checkpoint_get_info(checkpoint);
    assert_string_equal(info->run, "k3v9x2");
    assert_int_equal(info->attempt, 1);
    assert_int_equal(info->step, 100);
    assert_int_equal(info->epoch, 2);
    assert_int_equal(info->sample, 17);
    assert_true(info->loss == 2.5);
    assert_true(isnan(info->valid_loss));
    assert_true(json_equal(info->recipe, world.info.recipe));
    assert_true(json_equal(info->tokenizer, world.info.tokenizer));
    dt_strbuf_init(&index);
    snprintf(path, sizeof(path), "%s/step-00000100/index.json", world.parent);
    assert_int_equal(dt_file_read(&index, path, 1 << 20, NULL), DT_OK);
    dt_digest_of(digest, index.data, index.length);
    assert_string_equal(digest, world.saved[0].digest);
    bytes = (int64_t)index.length;
    for (int64_t i = 0; i < checkpoint->index.file_count; i++)
        bytes += checkpoint->index.files[i].bytes;
    assert_int_equal(bytes, world.saved[0].bytes);
    dt_strbuf_release(&index);
    dt_checkpoint_close(checkpoint);
    fake_world_release(&world);
}

static void test_one_parameter_is_read_by_its_name(void **state)
{
    fake_world world;
    dt_checkpoint *checkpoint;
    dt_error err = DT_ERROR_INIT;
    float out[128];
    const dt_model *model = fake_model();
    dt_param padded = model->params[0], longer = model->params[1], other = model->params[1];

    padded.dim[0] = 14;
    padded.elems = 42;
    longer.dim[0] = longer.stored_rows = 14;
    longer.elems = 42;
    other.name = "wqe.weight";
    fake_world_init(&world, *state);
    world.ranks = 2;
    world.layout = FAKE_STRIPES;
    fake_must_save(&world);
    checkpoint = open_one(&world, "step-00000100");
    assert_int_equal(dt_checkpoint_load_param(checkpoint, &model->params[1], out, NULL), DT_OK);
    for (int i = 0; i < 24; i++)
        assert_true(out[i] == fake_value(1, i, DT_CHECKPOINT_VALUE));
    for (int i = 0; i < 128; i++)
        out[i] = NAN;
    assert_int_equal(dt_checkpoint_load_param(checkpoint, &padded, out, NULL), DT_OK);
    for (int i = 0; i < 42; i++)
        assert_true(out[i] == fake_value(0, i, DT_CHECKPOINT_VALUE));
    assert_int_equal(dt_checkpoint_load_param(checkpoint, &longer, out, &err), DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "is 8 x 3 in the checkpoint and 14 x 3 in this model"));
    dt_error_clear(&err);
    assert_int_equal(dt_checkpoint_load_param(checkpoint, &other, out, &err), DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "no parameter 'wqe.weight'"));
    dt_checkpoint_close(checkpoint);
    fake_world_release(&world);
}

/* A whole parameter keeps its name and shape, so that other programs can read the file. */
static void test_a_whole_model_is_a_plain_safetensors_file(void **state)
{
    fake_world world;
    dt_checkpoint *checkpoint;
    dt_checkpoint_part *part;
    int64_t start, elems;

    fake_world_init(&world, *state);
    fake_must_save(&world);
    checkpoint = open_one(&world, "step-00000100");
    assert_int_equal(checkpoint->index.file_count, 2);
    assert_string_equal(checkpoint->index.files[0].name, "model-0.safetensors");
    assert_string_equal(checkpoint->index.files[1].name, "optimizer-0.safetensors");
    assert_int_equal(dt_checkpoint_use_part(&part, checkpoint, 0, NULL), DT_OK);
    /* Five parameters and the metadata. */
    assert_int_equal(json_object_size(part->header.header), 6);
    assert_true(dt_safetensors_find(&start, &elems, &part->header, "wte.weight"));
    assert_int_equal(elems, FAKE_VOCAB * 3);
    assert_int_equal(start % 8, 0);
    assert_int_equal(dt_checkpoint_use_part(&part, checkpoint, 1, NULL), DT_OK);
    assert_true(dt_safetensors_find(&start, &elems, &part->header, "h.0.mlp.c_fc.bias.v"));
    dt_checkpoint_close(checkpoint);
    fake_world_release(&world);
}

static dt_status load_into_another_model(fake_world *world, dt_strategy_state *state, dt_error *err)
{
    dt_model *model = state->model;

    if (world->info.step == 1)
        model->param_count--;
    else if (world->info.step == 2)
        model->params[2].name = "h.7.mlp.c_fc.weight";
    else if (world->info.step == 3)
        model->params[2].elems = model->params[2].dim[0] * (model->params[2].dim[1] = 4);
    else
        model->params[0].stored_rows++;
    return fake_load(world, state, err);
}

static void test_another_model_is_refused_with_the_difference(void **state)
{
    static const char *const words[] = {"has 5 parameters, and this model has 4",
                                        "no parameter 'h.7.mlp.c_fc.weight'",
                                        "is 12 x 3 in the checkpoint and 12 x 4 in this model",
                                        "'wte.weight' is 5 x 3 in the checkpoint and 6 x 3"};
    fake_world world;

    fake_world_init(&world, *state);
    fake_must_save(&world);
    for (int i = 0; i < 4; i++) {
        world.info.step = i + 1;
        assert_int_equal(fake_world_run(&world, load_into_another_model), DT_ERR_RECIPE);
        if (strstr(world.err[0].message, words[i]) == NULL)
            fail_msg("%s", world.err[0].message);
    }
    fake_world_release(&world);
}

static void test_without_moments_only_values_can_be_loaded(void **state)
{
    fake_world world;

    fake_world_init(&world, *state);
    world.no_moments = true;
    fake_must_save(&world);
    fake_must_load(&world);
    world.no_moments = false;
    assert_int_equal(fake_world_run(&world, fake_load), DT_ERR_CORRUPT);
    assert_non_null(strstr(world.err[0].message, "no optimizer state"));
    fake_world_release(&world);
}

static void test_a_second_checkpoint_of_a_step_keeps_the_first(void **state)
{
    fake_world world;
    const char *path;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    fake_world_init(&world, *state);
    fake_must_save(&world);
    fake_must_save(&world);
    assert_string_equal(world.saved[0].directory, "step-00000100-2");
    assert_int_equal(dt_checkpoint_find_newest(&path, world.parent, &arena, NULL), DT_OK);
    assert_non_null(strstr(path, "/step-00000100-2"));
    dt_checkpoint_close(open_one(&world, "step-00000100"));
    fake_world_release(&world);
    dt_arena_release(&arena);
}

static void test_a_later_attempt_supersedes_a_higher_step(void **state)
{
    fake_world world;
    const char *path;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    fake_world_init(&world, *state);
    fake_must_save(&world);
    world.info.attempt = 2;
    world.info.step = 60;
    fake_must_save(&world);
    assert_int_equal(dt_checkpoint_find_newest(&path, world.parent, &arena, NULL), DT_OK);
    assert_non_null(strstr(path, "/step-00000060"));
    fake_world_release(&world);
    dt_arena_release(&arena);
}

static void test_no_checkpoint_is_not_an_error(void **state)
{
    dt_arena arena;
    const char *path = "";

    dt_arena_init(&arena, 0);
    assert_int_equal(dt_checkpoint_find_newest(&path, "/nonexistent/folder", &arena, NULL), DT_OK);
    assert_null(path);
    assert_int_equal(dt_checkpoint_find_newest(&path, *state, &arena, NULL), DT_OK);
    assert_null(path);
    assert_int_equal(fake_prune("/nonexistent/folder", 3), DT_OK);
    dt_arena_release(&arena);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, fake_folder_make, fake_folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_any_layout_loads_from_any_layout),
        IN_FOLDER(test_any_mesh_loads_from_any_mesh),
        IN_FOLDER(test_a_box_keeps_its_dimensions),
        IN_FOLDER(test_a_rank_reads_the_files_of_what_it_holds),
        IN_FOLDER(test_any_padding_loads_from_any_padding),
        IN_FOLDER(test_every_rank_gets_the_same_description),
        IN_FOLDER(test_one_parameter_is_read_by_its_name),
        IN_FOLDER(test_a_whole_model_is_a_plain_safetensors_file),
        IN_FOLDER(test_another_model_is_refused_with_the_difference),
        IN_FOLDER(test_without_moments_only_values_can_be_loaded),
        IN_FOLDER(test_a_second_checkpoint_of_a_step_keeps_the_first),
        IN_FOLDER(test_a_later_attempt_supersedes_a_higher_step),
        IN_FOLDER(test_no_checkpoint_is_not_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
