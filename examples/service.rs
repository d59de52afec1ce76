//! A small service over the library: documents and schemas in, values out, many at once.
//!
//! ```text
//! cargo run --release --no-default-features --features service --example service               # a model without weights
//! cargo run --release --features service --example service -- 127.0.0.1:8080 MODEL.gguf
//!
//! curl -s localhost:8080/extract -H 'content-type: application/json' -d '{"text": "Ada, 36", "schema":
//!     {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}'
//! curl -s localhost:8080/stats
//! ```
//!
//! A client that goes away cancels its request. `examples/load.rs` puts it under load.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use constrain::extract::{Extractor, Options};
use constrain::serve::{self, Client, ConstraintCache, Scheduler};
use constrain::{Document, Error, Kind, Limits, Vocabulary, schema};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Requests at a time.
const SEQUENCES: usize = 16;

/// What all requests share.
struct Service {
    client: Client,
    constraints: ConstraintCache,
}

/// What is asked for.
#[derive(Deserialize)]
struct Ask {
    text: String,
    schema: Value,
    instruction: Option<String>,
    max_tokens: Option<usize>,
    #[serde(default)]
    seed: u64,
}

type Answer = Result<Json<Value>, (StatusCode, Json<Value>)>;

async fn extract(State(service): State<Arc<Service>>, Json(ask): Json<Ask>) -> Answer {
    answer(&service, ask).await.map(Json).map_err(|error| (status(&error), Json(problem(&error))))
}

async fn answer(service: &Arc<Service>, ask: Ask) -> Result<Value, Error> {
    let mut options = Options { schema: strangers_schema(), ..Options::default() };
    options.max_tokens = ask.max_tokens.unwrap_or(options.max_tokens);
    options.settings.seed = ask.seed;
    options.instruction = ask.instruction.unwrap_or(options.instruction);
    let (shared, text) = (Arc::clone(service), ask.schema.to_string());
    // Compiling is work, which a runtime does elsewhere.
    let compile = tokio::task::spawn_blocking(move || {
        // Which document values are pieces of, the extractor knows; any could be.
        let document = Some(Document::unknown());
        let of_any = schema::Options { document, ..options.schema.clone() };
        let constraint = shared.constraints.schema(&text, &of_any)?;
        Extractor::with_constraint(constraint, &text, options)
    });
    let extractor: Extractor = match compile.await {
        Ok(extractor) => extractor?,
        Err(error) => return Err(Error::new(Kind::Model, error.to_string())),
    };
    let found = service.client.extract_async(&extractor, &ask.text).await?;
    let mut sure = Map::new();
    for field in &found.fields {
        if let Some(figures) = &field.sureness {
            sure.insert(field.pointer.clone(), json!(figures.probability));
        }
    }
    Ok(
        json!({"value": found.value, "sure": sure, "tokens": found.statistics.tokens, "seed": found.seed}),
    )
}

/// Schemas from strangers get tighter budgets, and constraints less memory.
fn strangers_schema() -> schema::Options {
    let limits = Limits { cache_bytes: 4 << 20, ..Limits::service() };
    schema::Options { limits, ..schema::Options::default() }
}

fn status(error: &Error) -> StatusCode {
    match error.kind() {
        Kind::Overloaded { .. } | Kind::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
        Kind::Model | Kind::Io => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

fn problem(error: &Error) -> Value {
    json!({"error": error.to_string()})
}

async fn stats(State(service): State<Arc<Service>>) -> Json<Value> {
    let (all, cache) = (service.client.stats(), service.constraints.stats());
    Json(json!({
        "running": all.running, "waiting": all.waiting, "finished": all.finished, "failed": all.failed,
        "tokens": all.tokens, "passes": all.passes, "overhead": all.overhead(),
        "constraints": cache.constraints, "constraint_bytes": cache.bytes,
        "cache_hits": cache.hits, "cache_misses": cache.misses, "cache_loaded": cache.loaded,
        "warnings": service.constraints.take_warnings().iter().map(Error::to_string).collect::<Vec<_>>(),
        "resident_bytes": resident(),
    }))
}

/// Memory of this process, where the system tells.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<usize>().ok()? * 1024)
}

/// Runs the model: of a file, or one without weights.
fn run(scheduler: Scheduler, file: Option<&str>) -> Result<(), Error> {
    #[cfg(feature = "llama")]
    if let Some(path) = file {
        use constrain::model::llama::{LlamaModel, LlamaOptions, LlamaWeights};
        let options = LlamaOptions { sequences: SEQUENCES, ..LlamaOptions::default() };
        let weights = LlamaWeights::load(path.as_ref(), &options)?;
        return scheduler.run(&mut LlamaModel::new(&weights, &options)?).map(|_| ());
    }
    if file.is_some() {
        let message = "this build has no llama.cpp: add the feature llama";
        return Err(Error::new(Kind::BadArgument, message));
    }
    let model = constrain::model::scripted::ScriptedModel::noise(1);
    scheduler.run(&mut model.with_sequences(SEQUENCES)).map(|_| ())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let file = args.next();
    let (client, scheduler) = serve::channel(serve::Options { queue: 64, ..Default::default() });
    let model = std::thread::spawn(move || {
        if let Err(error) = run(scheduler, file.as_deref()) {
            eprintln!("the model: {error}");
        }
    });
    let asked = client.clone();
    let vocabulary: Vocabulary =
        tokio::task::spawn_blocking(move || asked.ask(|model| model.vocabulary().clone()))
            .await??;
    let constraints = ConstraintCache::new(&vocabulary, 64 << 20);
    let service = Arc::new(Service { client, constraints });
    let routes = Router::new().route("/extract", post(extract)).route("/stats", get(stats));
    let listener = tokio::net::TcpListener::bind(&address).await?;
    println!("listening on {}", listener.local_addr()?);
    axum::serve(listener, routes.with_state(service)).await?;
    drop(model);
    Ok(())
}
