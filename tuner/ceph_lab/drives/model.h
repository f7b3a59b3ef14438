/* A drive in slow motion: when is a request done that is issued now?
 *
 * The model knows no clock, no thread and no kernel. Times are seconds on whatever clock the caller has; they never
 * go back. `preload.c` drives it by the machine's clock, the tests by a virtual one.
 */
#ifndef CEPH_TUNER_DRIVE_MODEL_H
#define CEPH_TUNER_DRIVE_MODEL_H

#include <stdint.h>

enum drive_kind { DRIVE_READ = 0, DRIVE_WRITE = 1, DRIVE_FLUSH = 2 };

struct drive;

/* A drive of `name=value` words (times in seconds, rates per second); NULL where a word is unknown or missing.
 *
 * kind=flash  read_s write_s read_iops write_iops read_bytes_s write_bytes_s flush_s jitter seed
 * kind=disk   track_seek_s average_seek_s rotation_s bytes_s size queue patience_s readahead flush_s seed
 */
struct drive *drive_new(const char *words);
void drive_free(struct drive *drive);

/* Issue a request. Gives a ticket, to be released once the request was seen done; -1 where memory ran out. */
long drive_submit(struct drive *drive, double now, int kind, uint64_t offset, uint64_t size);

/* Let the drive work until `now`. */
void drive_advance(struct drive *drive, double now);

/* When the request is done; infinity while the drive has not begun with it. */
double drive_done_at(const struct drive *drive, long ticket);

/* When the drive decides next; infinity where nothing waits for that. */
double drive_decides_at(const struct drive *drive);

void drive_release(struct drive *drive, long ticket);

#endif
