/* model_table: the table of the kinds of models: X(KIND, name). docs/adding-a-model.md describes a new kind.
 *
 * A row makes DT_MODEL_KIND, the word `name` of model.kind (runs keep it: it must not be renamed), the member `name`
 * of dt_model_config, and declares what the kind defines: dt_architecture_NAME in recipes/architecture/NAME.c, and
 * dt_NAME_kind in engine/model/NAME/kind.c.
 */
#ifndef DT_RECIPES_FIELDS_MODEL_TABLE_H
#define DT_RECIPES_FIELDS_MODEL_TABLE_H

#define DT_MODELS(X) \
    X(GPT2, gpt2)    \
    X(MLP, mlp)      \
    X(LLAMA, llama)  \
    X(TRANSFORMER, transformer)

#endif
