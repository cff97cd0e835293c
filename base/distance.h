/* distance: computes the edit distance of two words, for "did you mean".
 *
 * Counts insertions, deletions, replacements and swaps of neighbours that turn one into the other
 * (optimal string alignment). The distance of a word of DT_DISTANCE_MAX bytes or more is DT_DISTANCE_MAX: such words
 * are not typed by hand.
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
