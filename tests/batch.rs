//! `constrain extract`, `constrain eval` and `--trace` as black boxes, on the model without weights.

mod support;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use support::Folder;

const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "name": {"type": "string", "maxLength": 12},
    "kind": {"enum": ["invoice", "letter", null]},
    "lines": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}},
      "required": ["n"], "additionalProperties": false}, "maxItems": 40}
  },
  "required": ["name", "kind", "lines"],
  "additionalProperties": false
}"#;

fn docs(count: usize) -> String {
    let row = |n: usize| json!({"id": n, "text": format!("Document {n}. {}", "x".repeat(n % 40))});
    (0..count).map(|n| format!("{}\n", row(n))).collect()
}

fn extract(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_constrain"));
    command.args(["extract", "--model", "scripted:7", "--max-tokens", "150"]).args(args);
    command.env_remove("CONSTRAIN_MODEL").stdin(Stdio::null());
    command
}

fn run(command: &mut Command) -> Output {
    command.output().expect("the program runs")
}

#[track_caller]
fn ended(output: &Output, code: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

fn rows(path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("an output");
    assert!(text.is_empty() || text.ends_with('\n'), "a torn row");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn ids(rows: &[Value]) -> Vec<&Value> {
    rows.iter().map(|row| &row["id"]).collect()
}

fn validate(rows: &[Value]) {
    let schema = serde_json::from_str(SCHEMA).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for row in rows {
        assert!(validator.is_valid(&row["value"]), "{row}");
    }
}

/// Kills the program when its output has this many rows; whether it was still at work then.
fn kill_at(command: &mut Command, path: &str, rows: usize) -> bool {
    let mut child = command.stderr(Stdio::null()).spawn().expect("the program runs");
    loop {
        let text = std::fs::read(path).unwrap_or_default();
        if text.iter().filter(|&&byte| byte == b'\n').count() >= rows {
            child.kill().expect("it can be killed");
        }
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            return status.code().is_none();
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_batch_that_is_killed_goes_on_where_it_was() {
    let folder = Folder::new("killed");
    let (schema, docs) = (folder.file("s.json", SCHEMA), folder.file("docs.jsonl", docs(500)));
    let (out, whole) = (folder.path("out.jsonl"), folder.path("whole.jsonl"));
    let args = |out: &str| {
        let mut command = extract(&["--schema", &schema, "--input", &docs, "-q"]);
        command.args(["--output", out]);
        command
    };
    let mut killed = 0;
    for rows in [20, 60, 61, 150, 300] {
        killed += usize::from(kill_at(&mut args(&out), &out, rows));
        // What a power failure leaves.
        if rows == 61 {
            let mut text = std::fs::read(&out).expect("an output");
            let torn = text.len().saturating_sub(3);
            text.truncate(torn);
            std::fs::write(&out, text).expect("a file");
        }
    }
    assert!(killed >= 3, "the batch was too fast to be killed: {killed}");
    ended(&run(&mut args(&out)), 0);
    let done = rows(&out);
    assert_eq!(
        ids(&done),
        (0..500).map(Value::from).collect::<Vec<_>>().iter().collect::<Vec<_>>()
    );
    let keys: BTreeSet<&str> = done.iter().filter_map(|row| row["key"].as_str()).collect();
    assert_eq!(keys.len(), 500);
    validate(&done);
    // An output that was never interrupted is the same, byte for byte.
    ended(&run(&mut args(&whole)), 0);
    assert_eq!(std::fs::read(&out).ok(), std::fs::read(&whole).ok());
    // There is nothing left to do.
    ended(&run(&mut args(&out)), 0);
    assert_eq!(std::fs::read(&out).ok(), std::fs::read(&whole).ok());
    // Rows of other documents are no rows of these.
    let refused = run(extract(&["--schema", &schema, "--input", &docs, "--output", &out])
        .args(["--instruction", "Something else."]));
    assert!(ended(&refused, 2).contains("500 rows"));
    assert_eq!(std::fs::read(&out).ok(), std::fs::read(&whole).ok());
}

#[cfg(unix)]
#[test]
fn an_interrupted_batch_says_so() {
    let folder = Folder::new("interrupted");
    let (schema, docs) = (folder.file("s.json", SCHEMA), folder.file("docs.jsonl", docs(500)));
    let out = folder.path("out.jsonl");
    let mut command = extract(&["--schema", &schema, "--input", &docs, "--output", &out]);
    let child = command.stderr(Stdio::piped()).spawn().expect("the program runs");
    while std::fs::read(&out).map_or(0, |text| text.len()) < 1000 {
        std::thread::yield_now();
    }
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.expect("kill runs").success());
    let said = ended(&child.wait_with_output().expect("it ends"), 2);
    assert!(said.contains("interrupted after") && said.contains("goes on"), "{said}");
    let done = rows(&out).len();
    assert!((1..500).contains(&done), "{done} rows");
    ended(&run(&mut command), 0);
    assert_eq!(rows(&out).len(), 500);
}

#[test]
fn bad_rows_become_error_rows() {
    let folder = Folder::new("bad-rows");
    let schema = folder.file("s.json", SCHEMA);
    let docs = "{\"id\": 1, \"text\": \"a\"}\n\nnot JSON\n{\"id\": \"x\"}\n{\"id\": 2, \"text\": 5}\n\
                {\"id\": 1, \"text\": \"a\"}\n{\"text\": \"no id\"}\n[1]\n{\"id\": \"\\u0000\", \"text\": \"\"}";
    let docs = folder.file("docs.jsonl", docs);
    let out = folder.path("out.jsonl");
    let args = ["--schema", &schema, "--input", &docs, "--output", &out];
    let said = ended(&run(&mut extract(&args)), 1);
    assert!(said.contains("4 values and 4 errors"), "{said}");
    assert!(said.contains("warning: line 6 has the id of line 1, 1; "), "{said}");
    let done = rows(&out);
    let failed: Vec<bool> = done.iter().map(|row| row.get("error").is_some()).collect();
    assert_eq!(failed, [false, true, true, true, false, false, true, false]);
    assert_eq!(done[0]["value"], done[4]["value"]);
    assert_ne!(done[0]["key"], done[4]["key"]);
    for (at, part) in [(1, "line 3 is not JSON"), (2, "\"text\""), (3, "not a string")] {
        assert!(done[at]["error"].as_str().is_some_and(|e| e.contains(part)), "{}", done[at]);
    }
    // They are done; unless they are to be tried again, and then they fail again.
    ended(&run(&mut extract(&args)), 1);
    assert_eq!(rows(&out), done);
    let said = ended(&run(extract(&args).arg("--retry-errors")), 1);
    assert!(said.contains("4 rows now"), "{said}");
    let again: BTreeSet<String> = rows(&out).iter().map(Value::to_string).collect();
    assert_eq!(again, done.iter().map(Value::to_string).collect());
    // What is no output is left alone.
    let other = folder.file("other.jsonl", "{\"a\": 1}\n");
    let refused = run(&mut extract(&["--schema", &schema, "--input", &docs, "--output", &other]));
    ended(&refused, 2);
    assert_eq!(std::fs::read_to_string(&other).ok().as_deref(), Some("{\"a\": 1}\n"));
    // Nor is it taken for a torn row.
    let note = folder.file("note.txt", "a note without a line break");
    let refused = run(&mut extract(&["--schema", &schema, "--input", &docs, "--output", &note]));
    ended(&refused, 2);
    assert_eq!(std::fs::read_to_string(&note).ok().as_deref(), Some("a note without a line break"));
}

#[test]
fn shards_are_parts_of_the_whole() {
    let folder = Folder::new("shards");
    let (schema, docs) = (folder.file("s.json", SCHEMA), folder.file("docs.jsonl", docs(40)));
    let mut all = Vec::new();
    for shard in ["1/3", "2/3", "3/3", "1/1"] {
        let out = folder.path(&format!("{}.jsonl", shard.replace('/', "-")));
        let args = ["--schema", &schema, "--input", &docs, "--output", &out, "--shard", shard];
        ended(&run(&mut extract(&args)), 0);
        all.push(rows(&out));
    }
    let mut whole = all.pop().expect("four");
    assert!(all.iter().all(|part| !part.is_empty() && part.len() < 40));
    let mut parts: Vec<Value> = all.concat();
    let by_id = |row: &Value| row["id"].as_u64();
    parts.sort_by_key(by_id);
    whole.sort_by_key(by_id);
    assert_eq!(parts, whole);
    let wrong = run(&mut extract(&[
        "--schema", &schema, "--input", &docs, "--output", "x", "--shard", "4/3",
    ]));
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn folders_long_documents_tables_and_pages() {
    let folder = Folder::new("folder");
    let schema = folder.file("s.json", SCHEMA);
    let long: String = (0..120).map(|n| format!("Line {n} costs {} euros.\n", n * 7)).collect();
    folder.file("docs/long.txt", &long);
    folder.file("docs/sub/<b>.txt", "A <b>short</b> one.");
    folder.file("docs/.hidden", "not read");
    folder.file("docs/latin.txt", b"caf\xe9");
    let input = folder.path("docs");
    let (out, html) = (folder.path("out.csv"), folder.path("review.html"));
    let args = ["--schema", &schema, "--input", &input, "--output", &out, "--html", &html];
    let more = ["--format", "csv", "--ctx-size", "1200", "--overlap-tokens", "100"];
    let said = ended(&run(extract(&args).args(more)), 1);
    assert!(said.contains("2 values and 1 error; 3 rows now"), "{said}");
    let done = rows(&folder.path("out.csv.jsonl"));
    assert_eq!(ids(&done), ["latin.txt", "long.txt", "sub/<b>.txt"]);
    assert!(done[1]["parts"].as_u64().is_some_and(|parts| parts > 1), "{}", done[1]);
    validate(&done[1..]);
    let figures = done[1]["fields"].as_object().expect("figures");
    for (pointer, field) in figures {
        let value = done[1]["value"].pointer(pointer);
        assert!(value.is_some_and(|value| !value.is_object() && !value.is_array()), "{pointer}");
        assert!(field["p"].as_f64().is_some_and(|p| (0.0..=1.0).contains(&p)), "{field}");
    }
    let mut table = csv::Reader::from_path(&out).expect("a table");
    let header = table.headers().expect("a header").clone();
    assert_eq!(header.iter().take(3).collect::<Vec<_>>(), ["id", "error", "/name"]);
    let records: Vec<csv::StringRecord> = table.records().map(|r| r.expect("a record")).collect();
    assert_eq!(records.len(), 3);
    assert!(!records[0][1].is_empty() && records[1][1].is_empty());
    assert_eq!(Some(&records[2][2]), done[2]["value"]["name"].as_str());
    let page = std::fs::read_to_string(&html).expect("a page");
    assert!(page.contains("sub/&lt;b&gt;.txt") && !page.contains("<b>"));
    assert!(page.find("latin.txt") < page.find("long.txt"), "errors come first");
    assert!(said.contains("the first error now: \"latin.txt\": the file is not UTF-8"), "{said}");
}

#[test]
fn what_is_written_into_the_folder_of_documents_is_no_document() {
    let folder = Folder::new("inside");
    let schema = folder.file("s.json", SCHEMA);
    folder.file("docs/a.txt", "One.");
    folder.file("docs/b.txt", "Two.");
    let (input, out) = (folder.path("docs"), folder.path("docs/out.csv"));
    let html = folder.path("docs/review.html");
    let args = ["--schema", &schema, "--input", &input, "--output", &out, "--html", &html];
    for _ in 0..2 {
        let said = ended(&run(extract(&args).args(["--format", "csv"])), 0);
        assert!(said.contains("2 values and 0 errors"), "{said}");
        assert_eq!(ids(&rows(&format!("{out}.jsonl"))), ["a.txt", "b.txt"]);
    }
}

#[test]
fn outputs_overwrite_nothing_else() {
    let folder = Folder::new("apart");
    let schema = folder.file("s.json", SCHEMA);
    let input = folder.file("docs.jsonl", docs(1));
    let foreign = folder.file("mine.csv", "precious\n");
    let out = folder.path("out.jsonl");
    let roundabout = folder.path("./docs.jsonl");
    let base = ["--schema", &schema, "--input", &input];
    for (flags, part) in [
        (vec!["--output", &out, "--html", &roundabout], "would overwrite"),
        (vec!["--output", &out, "--html", &out], "would overwrite"),
        (vec!["--output", &schema], "would overwrite"),
        (vec!["--output", &input], "would overwrite"),
        (vec!["--output", &foreign, "--format", "csv"], "something else"),
    ] {
        let said = ended(&run(extract(&base).args(&flags)), 2);
        assert!(said.contains(part), "{flags:?}: {said}");
    }
    assert_eq!(std::fs::read_to_string(&input).expect("a file"), docs(1));
    assert_eq!(std::fs::read_to_string(&schema).expect("a file"), SCHEMA);
    assert_eq!(std::fs::read_to_string(&foreign).expect("a file"), "precious\n");
    assert!(!Path::new(&out).exists());
}

#[test]
fn an_output_has_one_writer() {
    let folder = Folder::new("locked");
    let (schema, docs) = (folder.file("s.json", SCHEMA), folder.file("docs.jsonl", docs(60)));
    let (out, html) = (folder.path("out.csv"), folder.path("out.html"));
    let journal = folder.path("out.csv.jsonl");
    let args = ["--schema", &schema, "--input", &docs, "--output", &out, "--format", "csv"];
    let start = || extract(&args).args(["--html", &html, "-q"]).stderr(Stdio::piped()).spawn();
    // What is locked is left as it is, a torn row included.
    let torn = folder.file("out.csv.jsonl", "{\"id\":");
    let lock = std::fs::File::options().append(true).open(&torn).expect("a file");
    lock.lock().expect("a lock");
    for flags in [&[][..], &["--retry-errors"]] {
        let said = ended(&run(extract(&args).args(flags)), 2);
        assert!(said.contains("another run") && said.contains("out.csv.jsonl"), "{said}");
    }
    assert_eq!(std::fs::read_to_string(&torn).expect("a file"), "{\"id\":");
    drop(lock);
    // Of several at a time each works alone, or is refused.
    let begun: Vec<_> = (0..4).map(|_| start().expect("the program runs")).collect();
    let codes: Vec<_> = begun
        .into_iter()
        .map(|child| child.wait_with_output().expect("it ends").status.code())
        .collect();
    assert!(codes.contains(&Some(0)), "{codes:?}");
    assert!(codes.iter().all(|code| [Some(0), Some(2)].contains(code)), "{codes:?}");
    let done = rows(&journal);
    assert_eq!(ids(&done), (0..60).map(Value::from).collect::<Vec<_>>().iter().collect::<Vec<_>>());
}

#[test]
fn documents_and_labels_may_come_from_standard_input() {
    let folder = Folder::new("stdin-batch");
    let (schema, file) = (folder.file("s.json", SCHEMA), folder.file("docs.jsonl", docs(9)));
    let [a, b, html] = ["a.jsonl", "b.jsonl", "b.html"].map(|name| folder.path(name));
    let piped = |command: &mut Command, from: &str| {
        run(command.stdin(std::fs::File::open(from).expect("a file")))
    };
    ended(&run(&mut extract(&["--schema", &schema, "--input", &file, "--output", &a])), 0);
    let flags = ["--schema", &schema, "--input", "-", "--output", &b, "--html", &html];
    ended(&piped(&mut extract(&flags), &file), 0);
    // The page has figures, which rows have then too.
    let values = |path: &str| -> Vec<Value> {
        rows(path).iter().map(|row| json!([row["id"], row["value"]])).collect()
    };
    assert_eq!(values(&a), values(&b));
    assert!(std::fs::read_to_string(&html).is_ok_and(|page| page.contains("Document 8")));
    let eval = |flags: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_constrain"));
        command.args(["eval", "--schema", &schema, "--outputs", &a, "--json"]).args(flags);
        command
    };
    let label = |row: &Value| format!("{}\n", json!({"id": row["id"], "value": row["value"]}));
    let labels = folder.file("labels.jsonl", rows(&a).iter().map(label).collect::<String>());
    let scores = run(&mut eval(&["--labels", &labels]));
    assert_eq!(scores.stdout, piped(&mut eval(&["--labels", "-"]), &labels).stdout);
    ended(&scores, 0);
    // Outputs are files, and none that is read.
    for flags in [["--output", "-"], ["--html", "-"]] {
        let base = ["--schema", &schema, "--input", &file];
        let base = if flags[0] == "--html" {
            [&base[..], &["--output", &a]].concat()
        } else {
            base.to_vec()
        };
        assert!(ended(&run(extract(&base).args(flags)), 2).contains("name a file"), "{flags:?}");
    }
    for read in [&labels, &a, &schema] {
        let said = ended(&run(&mut eval(&["--labels", &labels, "--html", read])), 2);
        assert!(said.contains("would overwrite"), "{said}");
    }
}

/// What has no end cannot be gone on with.
#[cfg(unix)]
#[test]
fn a_device_is_no_journal() {
    let folder = Folder::new("device");
    let schema = folder.file("s.json", SCHEMA);
    let input = folder.file("docs.jsonl", docs(1));
    let flags = ["--schema", &schema, "--input", &input, "--output", "/dev/zero"];
    assert!(ended(&run(&mut extract(&flags)), 2).contains("not a regular file"));
}

#[test]
fn a_text_file_in_place_of_rows_is_pointed_out() {
    let folder = Folder::new("no-rows");
    let (schema, text) = (folder.file("s.json", SCHEMA), folder.file("a.txt", "Dear all,\nbye"));
    let out = folder.path("out.jsonl");
    let args = ["--schema", &schema, "--input", &text, "--output", &out];
    let said = ended(&run(&mut extract(&args)), 1);
    assert!(said.contains("warning: no line of") && said.contains("name their folder"), "{said}");
    assert!(said.contains("0 values and 2 errors"), "{said}");
}

#[test]
fn places_count_in_the_whole_document() {
    let folder = Folder::new("places");
    let schema = r#"{"type": "object", "properties": {"who": {"type": ["string", "null"], "maxLength": 30,
        "x-constrain": {"span": true}}, "sums": {"type": "array", "maxItems": 60, "items": {"type": "string",
        "minLength": 3, "maxLength": 9, "x-constrain": {"span": true}}}},
        "required": ["who", "sums"], "additionalProperties": false}"#;
    let schema = folder.file("s.json", schema);
    let text: String = (0..90).map(|n| format!("№ {n} kostet {} €. ", n * 37)).collect();
    let docs = folder.file("docs.jsonl", json!({"id": 1, "text": &text}).to_string());
    let out = folder.path("out.jsonl");
    let args = ["--schema", &schema, "--input", &docs, "--output", &out, "--details"];
    ended(&run(extract(&args).args(["--chunk-tokens", "300", "--overlap-tokens", "60"])), 0);
    let row = rows(&out).remove(0);
    assert!(row["parts"].as_u64().is_some_and(|parts| parts > 3), "{row}");
    let chars: Vec<char> = text.chars().collect();
    let mut found = 0;
    for (pointer, field) in row["fields"].as_object().expect("figures") {
        let value = row["value"].pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        for place in field["at"].as_array().into_iter().flatten() {
            let at = |i: usize| place[i].as_u64().expect("a number") as usize;
            assert_eq!(chars[at(0)..at(1)].iter().collect::<String>(), value, "{pointer}");
            found += 1;
        }
    }
    assert!(found > 3, "{row}");
}

/// The schema of a table with a column of every kind.
#[cfg(feature = "parquet")]
const KINDS: &str = r#"{"type": "object", "properties": {
    "flag": {"type": ["boolean", "null"]}, "count": {"type": "integer"}, "share": {"type": "number"},
    "in": {"type": "object", "properties": {"text": {"type": "string", "maxLength": 8}},
        "required": ["text"], "additionalProperties": false},
    "list": {"type": "array", "items": {"type": "integer"}, "maxItems": 3}},
    "required": ["flag", "count", "share", "in", "list"], "additionalProperties": false}"#;

#[cfg(feature = "parquet")]
#[test]
fn parquet_files_hold_what_the_rows_say() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    let folder = Folder::new("parquet");
    let schema = folder.file("s.json", KINDS);
    let docs = folder.file("docs.jsonl", format!("{}not JSON\n", docs(60)));
    let out = folder.path("out.parquet");
    let args = ["--schema", &schema, "--input", &docs, "--output", &out, "--format", "parquet"];
    // Interrupted once, the file is made at the end from all rows.
    assert!(kill_at(&mut extract(&args), &folder.path("out.parquet.jsonl"), 20));
    assert!(!Path::new(&out).exists());
    ended(&run(&mut extract(&args)), 1);
    let done = rows(&folder.path("out.parquet.jsonl"));
    let file = std::fs::File::open(&out).expect("a file");
    let reader = SerializedFileReader::new(file).expect("a Parquet file");
    let mut read = 0;
    for (row, record) in done.iter().zip(reader.get_row_iter(None).expect("rows")) {
        let record = record.expect("a row");
        let names: BTreeSet<&str> =
            record.get_column_iter().map(|(name, _)| name.as_str()).collect();
        let expected =
            ["/count", "/flag", "/in/text", "/list", "/share", "error", "id"].into_iter();
        assert_eq!(names, expected.collect());
        for (name, field) in record.get_column_iter() {
            let value = match name.as_str() {
                "id" | "error" => row.get(name),
                pointer => row["value"].pointer(pointer),
            };
            match (field, value.filter(|value| !value.is_null())) {
                (Field::Null, None) => {}
                (Field::Bool(found), Some(Value::Bool(value))) => assert_eq!(found, value),
                (Field::Long(found), Some(value)) => {
                    assert_eq!(Some(*found as f64), value.as_f64(), "{name} {value}");
                }
                (Field::Double(found), Some(value)) => assert_eq!(Some(*found), value.as_f64()),
                (Field::Str(found), Some(Value::String(value))) => assert_eq!(found, value),
                (Field::Str(found), Some(value)) => {
                    assert_eq!(serde_json::from_str::<Value>(found).ok().as_ref(), Some(value));
                }
                other => panic!("{name}: {other:?}"),
            }
        }
        read += 1;
    }
    assert_eq!((read, done.len()), (61, 61));
}

#[cfg(not(feature = "parquet"))]
#[test]
fn without_the_feature_the_program_says_how_to_write_parquet() {
    let refused = extract(&["--schema", "s", "--input", "i", "--output", "o"])
        .args(["--format", "parquet"])
        .output()
        .expect("the program runs");
    assert!(ended(&refused, 2).contains("--features parquet"));
}

#[test]
fn compiled_schemas_are_kept() {
    let folder = Folder::new("kept");
    let (schema, docs) = (folder.file("s.json", SCHEMA), folder.file("docs.jsonl", docs(3)));
    let (cache, mut outputs) = (folder.path("cache"), Vec::new());
    let files = || -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(&cache).into_iter().flatten();
        entries.map(|entry| entry.expect("a file").path()).collect()
    };
    for (round, said) in [(0, ""), (1, ""), (2, "warning"), (3, "")] {
        let out = folder.path(&format!("{round}.jsonl"));
        let args = ["--schema", &schema, "--input", &docs, "--output", &out, "--cache", &cache];
        if round == 2 {
            std::fs::write(&files()[0], "something else").expect("a file");
        }
        let told = ended(&run(extract(&args).arg("-q")), 0);
        assert!(told.contains(said) && told.contains("warning") != said.is_empty(), "{told}");
        assert_eq!(files().len(), 1);
        outputs.push(std::fs::read(&out).expect("an output"));
    }
    assert!(outputs.windows(2).all(|pair| pair[0] == pair[1]));
    let args =
        ["--schema", &schema, "--input", &docs, "--output", &folder.path("x"), "--cache", &docs];
    ended(&run(&mut extract(&args)), 2);
}

#[test]
fn weak_fields_are_asked_for_again() {
    let folder = Folder::new("escalated");
    let (schema, docs) = (folder.file("s.json", SCHEMA), folder.file("docs.jsonl", docs(20)));
    let escalated = |out: &str, more: &[&str]| {
        let mut command = extract(&["--schema", &schema, "--input", &docs, "--output", out]);
        command.args(["--escalate-below", "0.3"]).args(more);
        ended(&run(&mut command), 0)
    };
    let (first, alone, both) = (folder.path("1"), folder.path("2"), folder.path("3"));
    let html = folder.path("review.html");
    ended(
        &run(&mut extract(&[
            "--schema",
            &schema,
            "--input",
            &docs,
            "--output",
            &first,
            "--details",
        ])),
        0,
    );
    let said = escalated(&alone, &[]);
    assert!(said.contains("asked again for") && said.contains("a surer answer"), "{said}");
    escalated(&both, &["--escalate-model", "scripted:8", "--details", "--html", &html]);
    let (first, alone, both) = (rows(&first), rows(&alone), rows(&both));
    validate(&alone);
    validate(&both);
    let (mut kept, mut replaced) = (0, BTreeSet::new());
    for (at, row) in first.iter().enumerate() {
        for (pointer, field) in row["fields"].as_object().expect("figures") {
            let p = field["p"].as_f64().expect("a figure");
            let (one, two) = (&alone[at]["fields"][pointer], &both[at]["fields"][pointer]);
            if p >= 0.3 {
                assert!(one.is_null() && two["earlier"].is_null(), "{one} {two}");
                assert_eq!(alone[at]["value"].pointer(pointer), row["value"].pointer(pointer));
                kept += 1;
                continue;
            }
            // The surest of the answers is taken, and the others are told.
            for (told, asked) in [(one, 2), (two, 3)] {
                let earlier = told["earlier"].as_array().expect("other answers");
                let best = told["p"].as_f64().expect("a figure");
                let others = earlier.iter().map(|answer| answer["p"].as_f64().expect("a figure"));
                assert!(others.clone().all(|other| other <= best + 1e-9), "{told}");
                let by = told["by"].as_str().unwrap_or("document");
                let mut answerers: Vec<&str> =
                    earlier.iter().filter_map(|answer| answer["by"].as_str()).collect();
                answerers.push(by);
                let early = told["doubtful"].is_null() && best >= 0.3;
                assert!(answerers.len() == asked || early, "{told}");
                assert_eq!(told["doubtful"].is_null(), best >= 0.3, "{told}");
                let from: BTreeSet<&str> = answerers.iter().copied().collect();
                assert!(from.len() == answerers.len() && from.contains("document"), "{told}");
                replaced.insert(by.to_owned());
                if by == "document" {
                    assert_eq!(told["p"], field["p"]);
                }
            }
        }
    }
    assert!(kept > 0, "nothing was sure");
    let by: Vec<&str> = replaced.iter().map(String::as_str).collect();
    // The model without weights says the same when it is asked alone.
    assert_eq!(by, ["document", "scripted:8"]);
    assert!(std::fs::read_to_string(&html).is_ok_and(|page| page.contains("<td>scripted:8; ")));
    // Rows of other settings are not mixed.
    let other =
        run(extract(&["--schema", &schema, "--input", &docs, "--output", &folder.path("2")])
            .args(["--escalate-below", "0.2"]));
    ended(&other, 2);
    for wrong in [&["--escalate-below", "1.5"][..], &["--escalate-model", "scripted:8"]] {
        let args = ["--schema", &schema, "--input", &docs, "--output", &folder.path("x")];
        ended(&run(extract(&args).args(wrong)), 2);
    }
}

#[test]
fn what_cannot_work_is_refused_before_the_model() {
    let folder = Folder::new("refused-batch");
    let schema = folder.file("s.json", SCHEMA);
    let docs = folder.file("docs.jsonl", docs(1));
    let out = folder.path("out.jsonl");
    let missing = folder.path("missing.jsonl");
    let bad = folder.file("examples.jsonl", "{\"text\": 1}\n");
    for args in [
        &["--schema", &schema, "--input", &missing, "--output", &out][..],
        &["--choice", "a", "--input", &docs, "--output", &out],
        &["--schema", &schema, "--input", &docs, "--output", &out, "--examples", &bad],
        &["--schema", &schema, "--input", &docs, "--output", &out, "--ctx-size", "40"],
        &["--schema", &schema, "--input", &docs, "--output", &out, "--temperature", "-1"],
        &["--schema", &schema, "--input", &docs, "--output", &folder.path("")],
    ] {
        ended(&run(&mut extract(args)), 2);
    }
    let long = folder.file("long.json", r#"{"type": "string", "minLength": 9000}"#);
    let args = ["--schema", &long, "--input", &docs, "--output", &out];
    assert!(ended(&run(&mut extract(&args)), 2).contains("150 tokens are too few"));
    let html = folder.path("no/page.html");
    let args = ["--schema", &schema, "--input", &docs, "--output", &out, "--html", &html];
    assert!(ended(&run(&mut extract(&args)), 2).contains("page.html"));
    assert!(Path::new(&out).metadata().map_or(0, |file| file.len()) == 0);
    // Nothing to do is done, and said.
    let (empty, none) = (folder.file("empty.jsonl", ""), folder.path("none.jsonl"));
    let args = ["--schema", &schema, "--input", &empty, "--output", &none];
    assert!(ended(&run(&mut extract(&args)), 0).contains("no documents"));
    // The number of a line is the file's.
    let odd = folder.file("odd.jsonl", b"\n{\"id\": }\n{\"id\": 1, \"text\": \"\xe9\"}\n");
    let args = ["--schema", &schema, "--input", &odd, "--output", &none];
    ended(&run(&mut extract(&args)), 1);
    let errors: Vec<Value> = rows(&none).iter().map(|row| row["error"].clone()).collect();
    assert_eq!(errors[0], "line 2 is not JSON: expected value at column 8");
    assert_eq!(errors[1], "line 3 is not UTF-8 text (byte 19)");
}

#[test]
fn values_are_scored_against_their_labels() {
    let folder = Folder::new("eval");
    let schema = folder.file("s.json", SCHEMA);
    let out = folder.path("out.jsonl");
    let docs = folder.file("docs.jsonl", docs(12));
    let args = ["--schema", &schema, "--input", &docs, "--output", &out, "--details"];
    ended(&run(&mut extract(&args)), 0);
    // The labels are what came out, but for one wrong name, one missing kind, and one document more.
    let mut labels: Vec<Value> = rows(&out);
    for (n, row) in labels.iter_mut().enumerate() {
        row["text"] = format!("Document {n}. {}", "x".repeat(n % 40)).into();
    }
    let strange = run(Command::new(env!("CARGO_BIN_EXE_constrain")).args([
        "eval",
        "--schema",
        &schema,
        "--labels",
        &out,
        "--outputs",
        &docs,
    ]));
    assert!(ended(&strange, 2).contains("line 1: no row of an output"));
    labels[3]["value"]["name"] = "another".into();
    labels[4]["value"]["lines"] = json!([{"n": 1}, {"n": 2}]);
    let found = labels[4]["value"]["lines"].clone();
    let mut more = labels[0].clone();
    more["id"] = 99.into();
    labels.push(more);
    let lines: String = labels.iter().map(|row| format!("{row}\n")).collect();
    let labels = folder.file("labels.jsonl", lines);
    let html = folder.path("report.html");
    let eval = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_constrain"));
        command.args(["eval", "--schema", &schema, "--labels", &labels]).args(more);
        let output = run(command.env_remove("CONSTRAIN_MODEL").stdin(Stdio::null()));
        ended(&output, 0);
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let report = eval(&["--outputs", &out, "--outputs", &out, "--json", "--html", &html]);
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let name = &report[0]["fields"]["/name"];
    assert_eq!(
        (&name["right"], &name["wrong"], &name["missing"]),
        (&json!(11), &json!(1), &json!(1))
    );
    assert_eq!((&report[0]["documents"], &report[0]["failed"]), (&json!(13), &json!(1)));
    let lines = &report[0]["fields"]["/lines/*/n"];
    assert!(lines["missing"].as_u64() >= Some(1), "{lines} {found}");
    assert!(report[0]["sureness"]["separation"].is_f64());
    let page = std::fs::read_to_string(&html).expect("a page");
    assert!(page.contains("<svg") && page.contains("/lines/*/n"));
    // Asking the model gives what was written, and the document more.
    let asked = eval(&["--json", "--model", "scripted:7", "--max-tokens", "150", "-q"]);
    let asked: Value = serde_json::from_str(&asked).expect("JSON");
    assert_eq!(asked[0]["fields"]["/name"]["wrong"], 1);
    assert_eq!((&asked[0]["documents"], &asked[0]["failed"]), (&json!(13), &json!(0)));
    assert!(eval(&["--outputs", &out]).contains("/lines/*/n"));
}

#[test]
fn labels_that_no_value_could_reach_are_refused() {
    let folder = Folder::new("bad-labels");
    let schema = r#"{"type": "object", "properties": {"reasoning": {"type": "string"},
      "name": {"type": "string", "maxLength": 3, "x-constrain": {"span": true}}}, "required": ["reasoning", "name"]}"#;
    let schema = folder.file("s.json", schema);
    let out = folder.file("out.jsonl", "{\"id\":1,\"key\":\"k\",\"value\":{\"name\":\"Ada\"}}\n");
    let eval = |labels: &str| {
        let labels = folder.file("labels.jsonl", labels);
        let mut command = Command::new(env!("CARGO_BIN_EXE_constrain"));
        let flags = ["eval", "--schema", &schema, "--labels", &labels, "--outputs", &out];
        run(command.args(flags).stdin(Stdio::null()))
    };
    // What people write need not reason, and has pieces of its document only where that is there.
    let good = "{\"id\": 1, \"text\": \"Ada, 36\", \"value\": {\"name\": \"Ada\"}}\n\
                {\"id\": 2, \"value\": {\"name\": \"Bob\"}}\n";
    ended(&eval(good), 0);
    let bad = "{\"id\": 3, \"value\": {\"name\": \"Charles\"}}\n{\"id\": 4, \"value\": {}}\n\
               {\"id\": 5, \"text\": \"Ada, 36\", \"value\": {\"name\": \"Bob\"}}\n";
    let said = ended(&eval(&format!("{good}{bad}")), 2);
    assert!(said.contains("3 of the right values"), "{said}");
    for part in [
        "line 3: ",
        "/name/maxLength",
        "line 4: ",
        "\"name\" is a required",
        "line 5: ",
        "not a piece",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = ended(&eval(&format!("{good}{good}")), 2);
    assert!(said.contains("line 3: its id is that of line 1"), "{said}");
    let many: String = (0..30).map(|id| format!("{{\"id\": {id}, \"value\": 1}}\n")).collect();
    let said = ended(&eval(&many), 2);
    assert!(said.contains("line 20: ") && !said.contains("line 21: "), "{said}");
    assert!(said.contains("and 10 more"), "{said}");
}

#[test]
fn stop_texts_that_would_cut_are_ignored_or_refused() {
    let folder = Folder::new("stops");
    let schema = folder.file("s.json", SCHEMA);
    let generate = |stop: &str, inside: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_constrain"));
        command.args(["--model", "scripted:3", "--schema", &schema, "--max-tokens", "120", "-q"]);
        command.args(["--seed", "5", "--whitespace", "compact", "--stop", stop, "a prompt"]);
        run(command.args(["--stop-inside", inside]).env_remove("CONSTRAIN_MODEL"))
    };
    let (ignored, refused) = (generate("\"", "ignore"), generate("\"", "refuse"));
    ended(&ignored, 0);
    let value: Value = serde_json::from_slice(&ignored.stdout).expect("a whole document");
    validate(&[json!({"value": value})]);
    let said = ended(&refused, 2);
    assert!(said.contains("can occur inside a document, as after") && refused.stdout.is_empty());
    // No string of JSON holds a line break, and there is no white space.
    let harmless = generate("\n", "refuse");
    ended(&harmless, 0);
    assert_eq!(harmless.stdout, ignored.stdout);
}

#[test]
fn a_trace_tells_the_story_of_the_output() {
    let folder = Folder::new("trace");
    let (schema, trace) = (folder.file("s.json", SCHEMA), folder.path("trace.jsonl"));
    let generate = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_constrain"));
        command.args(["--model", "scripted:3", "--schema", &schema, "--max-tokens", "120"]);
        command.args(["--seed", "5", "--trace", &trace, "--whitespace", "compact", "a prompt"]);
        command.args(more);
        run(command.env_remove("CONSTRAIN_MODEL").stdin(Stdio::null()))
    };
    for more in [&["-n", "2"][..], &["-n", "2", "--strategy", "lookup"]] {
        let output = generate(more);
        ended(&output, 0);
        let steps = rows(&trace);
        for (answer, line) in String::from_utf8_lossy(&output.stdout).lines().enumerate() {
            let own: Vec<&Value> = steps.iter().filter(|step| step["answer"] == answer).collect();
            let text: String = own.iter().filter_map(|step| step["text"].as_str()).collect();
            // Half a character in a token is shown as one that cannot be shown.
            let plain = |text: &str| text.chars().filter(char::is_ascii).collect::<String>();
            assert_eq!(plain(&text), plain(line), "the tokens make the output");
            for (at, step) in own.iter().enumerate() {
                assert_eq!(step["step"], at);
                let allowed = step["allowed"].as_u64().expect("a count");
                assert!(allowed >= 1 && step["forced"] == (allowed == 1));
                assert!(
                    step["after"].is_null()
                        || step["after"].as_array().is_some_and(
                            |list| !list.is_empty() && list.len() as u64 <= allowed.min(5)
                        ),
                    "{step}"
                );
                let kept = step["kept"].as_f64();
                assert!(kept.is_none_or(|kept| kept > 0.0 && kept <= 1.0 + 1e-9), "{step}");
            }
            let at = |pointer: &str| own.iter().any(|step| step["at"] == pointer);
            assert!(at("") && at("/name") && at("/kind"), "places are told");
        }
    }
    ended(&generate(&["--strategy", "beam"]), 2);
}
