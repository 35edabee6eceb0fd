/* debug: the state of the server's parts, for an operator who looks for a fault.
 *
 * GET /debug/state   on the operations listener only
 *   200 { "pool": {…}, "store": {…}, "results": {…}, "clients": {…}, "memory": {…} }; the members are not a stable interface
 */
#ifndef API_DEBUG_H
#define API_DEBUG_H

#include "http/http.h"

enum MHD_Result api_debug(struct request *rq);

#endif
