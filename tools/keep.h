/* keep.h: sessions as files. One is written beside its place and gets its name when it is whole on
 * the disk, so a file is the old session or the new one and never a part; whoever stops the
 * program while it is written keeps the old one. Its owner alone can read it. */
#ifndef TERN_KEEP_H
#define TERN_KEEP_H

#include "tools/output.h"
#include "tools/session.h"

enum tern_kept {
    TERN_KEPT_FAILED,
    TERN_KEPT_BUSY, /* the sequence's context is in use: later it may work */
    TERN_KEPT_NONE,
    TERN_KEPT_READ,
    TERN_KEPT_WRITTEN,
};

/* What the file says of itself, and its note, a copy that is freed with free(); note and info may
 * be NULL. NONE: there is no such file. FAILED: line says what is wrong with it. */
enum tern_kept tern_keep_read(const char *path, tern_saved_info *info, tern_memory *note,
                              char line[TERN_ARGS_LINE]);
/* The tokens that a file with this info has, info.n_tokens of them. */
bool tern_keep_tokens(const char *path, const tern_saved_info *info, tern_token *out,
                      char line[TERN_ARGS_LINE]);
/* Gives the sequence, which holds no tokens, those of the file. elsewhere: who reads it, and may
 * let the engine go on meanwhile (runtime/tern.h says how far); NULL: the caller. */
enum tern_kept tern_keep_restore(struct tern_session *s, tern_seq seq, const char *path,
                                 const struct tern_elsewhere *elsewhere,
                                 char line[TERN_ARGS_LINE]);
/* WRITTEN; else the file at path is what it was, and line says why. */
enum tern_kept tern_keep_save(struct tern_session *s, tern_seq seq, const char *path,
                              tern_bytes note, const struct tern_elsewhere *elsewhere,
                              char line[TERN_ARGS_LINE]);
/* Whether there is a folder that it can be written in, found before there is anything to lose. */
bool tern_keep_check(const char *path, char line[TERN_ARGS_LINE]);
/* At most so many bytes of memory does any of these take, besides the note. */
uint64_t tern_keep_bytes(const struct tern_session *s);

#endif
