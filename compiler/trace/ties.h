/* ties: in which order NumPy sorts equal elements while a kernel is called with arrays.
 *
 * The default kind of argsort leaves that open, and NumPy's answer depends on the processor.  The trace sorts stably, so the run that it is
 * compared with does, too: between ties_begin and ties_end, argsort without kind= and stable= is stable.  What the kernel asks for stays.
 */
#ifndef TRACE_TIES_H
#define TRACE_TIES_H

#include <stdbool.h>

bool ties_begin(void); /* false with an exception, and then nothing has changed */
void ties_end(void);   /* after ties_begin, whatever it returned; keeps an exception that is set */

#endif
