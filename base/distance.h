/* distance: how far two words are from each other, for "did you mean".
 *
 * Counts insertions, deletions, replacements and swaps of neighbours that turn one into the other
 * (optimal string alignment). Words of DT_DISTANCE_MAX bytes and more are DT_DISTANCE_MAX away from
 * everything: nobody mistypes those.
 */
#ifndef DT_BASE_DISTANCE_H
#define DT_BASE_DISTANCE_H

#ifdef __cplusplus
extern "C" {
#endif

#define DT_DISTANCE_MAX 64

int dt_distance(const char *a, const char *b);

#ifdef __cplusplus
}
#endif
#endif
