/* log: one event per line on standard error, `time level event key=value...`, or the same as JSON:
 * {"time","level","event","key":"value" or 1…,"text"?}, where text is the rest after the fields.
 *
 *   log_info("job_done", "job=%s wall_ms=%d", tag, ms);
 *
 * The event is a fixed name.  User source, private ids and IR text stay out of logs.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/error.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

enum log_format { LOG_TEXT, LOG_JSON };

void log_set_level(enum log_level least); /* default LOG_INFO */
void log_set_format(enum log_format f);   /* default LOG_TEXT */
void log_event(enum log_level level, const char *event, const char *fmt, ...) PRINTF(3, 4);

#define log_debug(...) log_event(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_event(LOG_INFO, __VA_ARGS__)
#define log_warn(...) log_event(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_event(LOG_ERROR, __VA_ARGS__)

#endif
