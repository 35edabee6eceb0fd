//! Uses every call of the crate against the server at argv[1] with the kernel in argv[2], and prints what it decoded.
use godbolt::{
    ClientState, CompilationFilters, CompilationRequest, CompilerOptions, FormatRequest, Godbolt,
};
use serde_json::{json, Value};

const INPUT: &str = "--input=x=8x16:float32";

async fn run(base: &str, source: &str) -> godbolt::Result<Value> {
    let ce = Godbolt::builder().base_url(base).build();
    let catalog = ce.catalog().await?;
    let languages: Vec<_> = catalog.languages.iter().map(|l| json!([l.id, l.extensions, l.monaco, l.default_compiler])).collect();
    let compilers: Vec<_> = catalog.compilers.iter().map(|c| json!([c.id, c.lang, c.alias, c.instruction_set])).collect();

    let plain = ce.compile("nki-trn2", &CompilationRequest::new(source).user_arguments(INPUT)).await?;
    let asm: Vec<_> = plain.asm.unwrap_or_default().into_iter()
        .map(|l| json!([l.text, l.source.map(|s| json!([s.file, s.line]))])).collect();

    let wrong = ce.compile("nki", &CompilationRequest::new("def f(x):\n    return x @ x\n").user_arguments(INPUT)).await?;
    let tags: Vec<_> = wrong.stderr.iter().filter_map(|l| l.tag.as_ref())
        .map(|t| json!([t.line, t.column, t.severity, t.text])).collect();

    let executor = CompilerOptions { executor_request: true, ..Default::default() };
    let run = ce.compile("nki", &CompilationRequest::new(source).user_arguments(INPUT).compiler_options(executor)).await?;
    let filters = CompilationFilters { execute: Some(true), ..Default::default() };
    let both = ce.compile("nki", &CompilationRequest::new(source).user_arguments(INPUT).filters(filters).tool("numerics", "")).await?;

    let link = ce.shorten(&ClientState::single("nki", source, "nki-trn1", INPUT)).await?;
    let state = ce.shortlink_info(link.url.rsplit('/').next().unwrap_or("")).await?;
    let doc = ce.asm_doc("nisa", "matmul").await?;
    let errors: Vec<String> = [
        ce.compile("gcc", &CompilationRequest::new(source)).await.err().map(|e| e.to_string()),
        ce.format("black", &FormatRequest::new(source)).await.err().map(|e| e.to_string()),
        ce.shortlink_info("nothing").await.err().map(|e| e.to_string()),
    ].into_iter().map(|e| e.unwrap_or_default()).collect();

    Ok(json!({
        "version": ce.version().await?, "languages": languages, "compilers": compilers,
        "other_language": ce.compilers_for("rust").await?.len(), "libraries": ce.libraries_for("nki").await?.len(),
        "tools": ce.tools_for("nki").await?.into_iter().map(|t| t.id).collect::<Vec<_>>(), "formats": ce.formats().await?.len(),
        "code": plain.code, "asm": asm, "asm_size": plain.asm_size, "wrong": [json!(wrong.code), json!(tags)],
        "run": [json!(run.code), json!(run.did_execute), json!(run.build_result.map(|b| b.code)), json!(run.stdout.len())],
        "both": [json!(both.code), json!(both.exec_result.map(|e| e.code))],
        "link": link.url, "state": [&state.sessions[0].source, &state.sessions[0].compilers[0].id, &state.sessions[0].compilers[0].options],
        "clientstate": ClientState::single("nki", source, "nki-trn1", INPUT).to_base64()?,
        "doc": doc.tooltip, "errors": errors,
    }))
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let source = std::fs::read_to_string(&args[2]).expect("the kernel");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    match runtime.block_on(run(&args[1], &source)) {
        Ok(seen) => println!("{seen}"),
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(1);
        }
    }
}
