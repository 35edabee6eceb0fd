/* ce: Compiler Explorer's REST API, for its clients in editors and terminals.
 *
 * What those clients rely on is kept to the letter: paths, member names, which members are always present, one line of
 * JSON without a newline at its end.  Where Compiler Explorer's own answers have faults (plain text errors for clients
 * that asked for JSON, caching headers on answers to POST), ours do not copy them.
 *
 *   GET  /api/languages  /api/compilers[/LANGUAGE]                 ?fields=a,b | all
 *   GET  /api/libraries[/LANGUAGE]  /api/tools/LANGUAGE  /api/formats  /api/version  /api/releaseBuild
 *        /api/popularArguments/COMPILER  /api/optimizationArguments/COMPILER  /api/siteTemplates
 *        /api/asm/SET/OPCODE  /source/builtin/list  /source/builtin/load/LANGUAGE/EXAMPLE
 *   POST /api/compiler/ID/compile  /api/noscript/compile  /api/format/NAME
 *   POST /api/shortener  GET /api/shortlinkinfo/ID
 *   GET  /clientstate/BASE64      redirects to the page; the server compiles nothing
 *
 * In these terms the language is "nki", and there is one compiler for each target: nki-trn1, nki-trn2 (alias nki) and
 * nki-trn3.  `asm` is the last stage; the stages before it are the pass pipeline (compilerOptions.produceOptPipeline);
 * the linalg as lowered is the IR (produceIr); what passes decided are the optimisation remarks (produceOptInfo);
 * executing is the numeric check against NumPy, and with the argument --simulate the run on the simulated machine, too.
 * Without executing, the output of --check and --simulate is the compiler's.  userArguments: ce_args (internal.h).
 */
#ifndef CE_CE_H
#define CE_CE_H

#include "http/http.h"

enum MHD_Result ce_languages(struct request *rq);
enum MHD_Result ce_compilers(struct request *rq);
enum MHD_Result ce_libraries(struct request *rq);
enum MHD_Result ce_tools(struct request *rq);
enum MHD_Result ce_formats(struct request *rq);
enum MHD_Result ce_format(struct request *rq);
enum MHD_Result ce_version(struct request *rq);
enum MHD_Result ce_arguments(struct request *rq);
enum MHD_Result ce_templates(struct request *rq);
enum MHD_Result ce_opcode(struct request *rq);
enum MHD_Result ce_examples(struct request *rq);
enum MHD_Result ce_example(struct request *rq);
enum MHD_Result ce_compile(struct request *rq);
enum MHD_Result ce_shorten(struct request *rq);
enum MHD_Result ce_link_info(struct request *rq);
enum MHD_Result ce_open_state(struct request *rq);

/* ---- what the routes of this API have in common (http/route.h) --------------------------------------------------- */

/* OPTIONS: 200 without a body. */
enum MHD_Result ce_options(struct request *rq);
/* Lets pages of other sites read an answer. */
void ce_add_headers(struct MHD_Response *r);
/* An error in the form that these clients expect: {"error":"…","message":"…","code":"…"}; or, for a client that did not
 * ask for JSON and asked for something that does not exist, the status' name as text. */
struct MHD_Response *ce_problem(struct request *rq, unsigned status, const char *code, const char *message);

#endif
