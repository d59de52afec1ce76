//! Load for `examples/service.rs`: many requests at a time, of which every fourth client goes away before its answer.
//!
//! ```text
//! cargo run --release --no-default-features --example load -- 127.0.0.1:8080 1000
//! ```
//!
//! Says how many were answered, whether a sequence is stuck at the end, and by how much the memory of the service
//! grew after the first third. Exit status 1 if something is wrong.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Clients at a time.
const CLIENTS: usize = 24;

/// Growth of memory that is none.
const GROWTH_MAX: f64 = 0.05;

/// What the answers were.
#[derive(Debug, Default)]
struct Tally {
    answered: AtomicUsize,
    cancelled: AtomicUsize,
    /// Refused since too many waited, and tried again.
    refused: AtomicUsize,
    wrong: AtomicUsize,
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let count: usize = args.next().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let (next, tally) = (AtomicUsize::new(0), Tally::default());
    let memory: Mutex<Vec<(usize, u64)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    one(&address, number, &tally);
                    if number % (count / 20).max(1) == 0
                        && let Some(bytes) = stats(&address)["resident_bytes"].as_u64()
                        && let Ok(mut memory) = memory.lock()
                    {
                        memory.push((number, bytes));
                    }
                }
            });
        }
    });
    let is_stuck = !drained(&address);
    println!("{tally:?}; at the end {}", stats(&address));
    let mut memory = memory.into_inner().unwrap_or_default();
    memory.sort_unstable();
    memory.extend(stats(&address)["resident_bytes"].as_u64().map(|bytes| (count, bytes)));
    println!("memory: {memory:?}");
    let warm = memory.iter().find(|(number, _)| *number >= count / 3);
    let growth = match (warm, memory.last()) {
        (Some(warm), Some(end)) => end.1 as f64 / warm.1 as f64 - 1.0,
        _ => 0.0,
    };
    println!("memory grew by {:.1} % after the first third; stuck: {is_stuck}", growth * 100.0);
    let wrong = tally.wrong.load(Ordering::Relaxed);
    ExitCode::from(u8::from(is_stuck || wrong > 0 || growth > GROWTH_MAX))
}

/// One request, under one of a few schemas.
fn one(address: &str, number: usize, tally: &Tally) {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 20 + number % 7},
            "kind": {"enum": ["a", "b", "c"]},
            "numbers": {"type": "array", "items": {"type": "integer"}, "maxItems": 8}
        },
        "required": ["name", "kind", "numbers"],
        "additionalProperties": false
    });
    let body = json!({"text": format!("Document {number}."), "schema": schema,
        "max_tokens": 120, "seed": number});
    if number % 4 == 3 {
        // Gone after some milliseconds, in all stages of a request.
        let patience = Duration::from_millis(number as u64 * 7 % 23);
        if let Ok(stream) = send(address, "POST /extract", &body.to_string()) {
            std::thread::sleep(patience);
            drop(stream);
        }
        tally.cancelled.fetch_add(1, Ordering::Relaxed);
        return;
    }
    loop {
        let (status, answer) = receive(send(address, "POST /extract", &body.to_string()));
        match status {
            200 if answer["value"].is_object() => tally.answered.fetch_add(1, Ordering::Relaxed),
            503 => {
                tally.refused.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
            _ => {
                eprintln!("request {number}: status {status}, {answer}");
                tally.wrong.fetch_add(1, Ordering::Relaxed)
            }
        };
        return;
    }
}

/// Waits until nothing runs or waits; false if that does not come.
fn drained(address: &str) -> bool {
    (0..600).any(|_| {
        let stats = stats(address);
        let is_idle = stats["running"] == 0 && stats["waiting"] == 0;
        if !is_idle {
            std::thread::sleep(Duration::from_millis(50));
        }
        is_idle
    })
}

fn stats(address: &str) -> Value {
    receive(send(address, "GET /stats", "")).1
}

/// Sends a request.
fn send(address: &str, what: &str, body: &str) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    let length = body.len();
    write!(
        stream,
        "{what} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )?;
    Ok(stream)
}

/// The status and the body of an answer; 0 if there is none.
fn receive(stream: std::io::Result<TcpStream>) -> (u16, Value) {
    let mut text = String::new();
    if stream.and_then(|mut stream| stream.read_to_string(&mut text)).is_err() {
        return (0, Value::Null);
    }
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, serde_json::from_str(body).unwrap_or_default())
}
