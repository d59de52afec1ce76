//! The program as a black box: exit status, standard output, standard error.
//!
//! No test needs a model: what needs one is refused before it, or is not tested here.

mod support;

use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use support::Folder;

fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_constrain"));
    command.args(args).env_remove("CONSTRAIN_MODEL").stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    program(args).output().expect("the program runs")
}

fn run_with_stdin(args: &[&str], stdin: &str) -> Output {
    let mut command = program(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program runs");
    // It may have exited without reading: then there is no one to write to.
    let _ = child.stdin.take().expect("a pipe").write_all(stdin.as_bytes());
    child.wait_with_output().expect("the program ends")
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("UTF-8")
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("UTF-8")
}

/// Asserts exit status 0 and gives standard output.
#[track_caller]
fn done(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    stdout(output)
}

/// Asserts exit status 2, nothing on standard output, and one message that says each of `parts`.
#[track_caller]
fn refused(output: &Output, parts: &[&str]) {
    assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
    assert_eq!(stdout(output), "");
    let message = stderr(output);
    assert_eq!(message.matches("constrain: ").count(), 1, "{message}");
    assert!(!message.contains("panicked"), "{message}");
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
}

const AGE: &str = r#"{
  "type": "object",
  "properties": {
    "name": {"type": "string", "minLength": 1},
    "age": {"type": "integer", "minimum": 0, "maximum": 150}
  },
  "required": ["name", "age"],
  "additionalProperties": false
}
"#;

/// A byte-level tokenizer: `tokens`, all visible ASCII characters, and one that ends.
fn tokenizer(tokens: &[&str]) -> String {
    let singles: Vec<String> = (b'!'..=b'~')
        .filter(|&byte| byte != b'<')
        .map(|byte| char::from(byte).to_string())
        .collect();
    let all = tokens.iter().copied().chain(singles.iter().map(String::as_str));
    let vocab: serde_json::Map<String, Value> =
        all.zip(1..).map(|(token, id)| (token.to_string(), Value::from(id))).collect();
    serde_json::json!({
        "added_tokens": [{"id": 0, "content": "</s>", "special": true}],
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocab, "merges": []}
    })
    .to_string()
}

#[test]
fn help_is_grouped_and_has_examples() {
    let long = run(&["--help"]);
    let long = done(&long);
    for part in ["Input:", "Constraint:", "Model:", "Sampling:", "Output:", "Examples:", "check"] {
        assert!(long.contains(part), "{part} is not in: {long}");
    }
    let short = run(&["-h"]);
    assert!(done(&short).len() < long.len());
    for command in ["check", "mask", "inspect", "pull"] {
        assert!(done(&run(&[command, "--help"])).contains("Usage: constrain"), "{command}");
    }
}

#[test]
fn wrong_usage_is_status_2() {
    for args in [
        &[][..],
        &["--no-such-flag"],
        &["check"],
        &["mask", "--schema", "x.json"],
        &["--schema", "x.json", "--top-k", "many", "prompt"],
        &["--schema", "x.json", "--preset", "poetry", "prompt"],
        &["--schema", "x.json", "--json", "--stream", "prompt"],
        &["--schema", "x.json", "--model", "a", "--hf", "b/c", "prompt"],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(stdout(&output), "", "{args:?}");
        assert_ne!(stderr(&output), "", "{args:?}");
    }
}

#[test]
fn a_schema_that_cannot_be_read_is_refused() {
    let folder = Folder::new("unreadable");
    let missing = folder.path("missing.json");
    let latin = folder.file("latin.json", b"{\"const\": \"\xe9\"}");
    for command in [&["check"][..], &["inspect"], &["prompt"]] {
        let with = |schema| run(&[command, &["--schema", schema]].concat());
        refused(&with(&missing), &["missing.json", "help: check the path"]);
        refused(&with(&latin), &["latin.json", "UTF-8", "byte 11", "iconv"]);
    }
    refused(&run(&["a prompt"]), &["no schema", "--schema FILE"]);
    refused(&run(&["--schema", &missing, "check"]), &["before the sub-command", "`--`"]);
}

#[test]
fn broken_json_is_shown_with_its_line() {
    let folder = Folder::new("broken");
    let schema = folder.file("s.json", "{\n  \"type\": \"object\",\n  \"properties\": {,}\n}\n");
    for command in [&["check"][..], &["inspect"], &["prompt"]] {
        let output = run(&[command, &["--schema", &schema]].concat());
        refused(&output, &["s.json:3:", "\"properties\": {,}", "^"]);
    }
}

#[test]
fn what_cannot_be_enforced_is_shown_with_its_pointer() {
    let folder = Folder::new("refused");
    for (schema, parts) in [
        (r#"{"items": {"minLength": -1}}"#, &["/items/minLength", "s.json:1:25"][..]),
        (r#"{"pattern": "(a)\\1"}"#, &["/pattern"]),
        (r##"{"$ref": "#/$defs/missing"}"##, &["/$ref", "missing"]),
        (r#"{"type": "string", "enum": [1, 2]}"#, &["s.json:1:"]),
        (r#"{"type": "integer", "minimum": 4, "maximum": 3}"#, &["s.json:1:"]),
        (r#"{"properties": {"a": false}, "required": ["a"], "type": "object"}"#, &["s.json:1:"]),
        (r#"{"$ref": "https://example.com/schema.json"}"#, &["/$ref"]),
    ] {
        let path = folder.file("s.json", schema);
        for command in [&["inspect"][..], &["prompt"]] {
            refused(&run(&[command, &["--schema", &path]].concat()), parts);
        }
        let output = run(&["check", "--schema", &path]);
        assert_eq!(output.status.code(), Some(2), "{schema}");
    }
}

#[test]
fn check_tells_what_becomes_of_each_keyword() {
    let folder = Folder::new("keywords");
    let schema = folder.file("s.json", r#"{"title": "T", "x-y": 1, "items": {"maximum": 3}}"#);
    let output = run(&["check", "--schema", &schema]);
    let expected =
        "annotation  /title\nannotation  /x-y\nenforced    /items\nenforced    /items/maximum\n";
    assert_eq!(done(&output), expected);
    let output = run(&["check", "--json", "--schema", &schema]);
    let report: Value = serde_json::from_str(done(&output)).expect("JSON");
    assert_eq!(report["enforceable"], true);
    assert_eq!(report["keywords"][3]["pointer"], "/items/maximum");
    assert_eq!(report["keywords"][3]["status"], "enforced");

    let schema = folder.file("s.json", r#"{"title": "T", "pattern": "(a)\\1"}"#);
    let output = run(&["check", "--schema", &schema]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).contains("refused     /pattern"), "{}", stdout(&output));
    assert!(stderr(&output).contains("s.json:1:27"), "{}", stderr(&output));
}

#[test]
fn check_warns_of_what_will_hurt() {
    let folder = Folder::new("warnings");
    let schema = folder.file(
        "s.json",
        "{\"type\": \"object\",\n \"properties\": {\"a\": {\"type\": \"string\"}, \"b\": {}},\n \"required\": [\"b\"]}",
    );
    let output = run(&["check", "--schema", &schema]);
    assert!(!done(&output).contains("warning"), "{}", stdout(&output));
    let told = stderr(&output);
    for part in ["warning: the required \"b\" comes after", "s.json:2:22 (/properties/a)", "   |  "]
    {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    let output = run(&["check", "--json", "--schema", &schema]);
    let report: Value = serde_json::from_str(done(&output)).expect("JSON");
    let lints: Vec<&str> = report["warnings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|warning| warning["lint"].as_str())
        .collect();
    assert_eq!(lints, ["open-object", "required-after-unbounded", "unbounded-string"]);
    assert_eq!(report["warnings"][1]["line"], 2);
    assert_eq!(report["enforceable"], true);
}

#[test]
fn check_accepts_what_matches() {
    let folder = Folder::new("accept");
    let schema = folder.file("s.json", AGE);
    let document = folder.file("d.json", "{\"name\": \"Zo\\u00eb\",\n \"age\": 1.5e1}\n");
    let output = run(&["check", "--schema", &schema, &document]);
    assert_eq!((done(&output), stderr(&output)), ("", ""));
    let output = run_with_stdin(&["check", "--schema", &schema, "-"], r#"{"name":"Z","age":0}"#);
    assert_eq!(done(&output), "");
    let output = run(&["check", "--json", "--schema", &schema, &document]);
    assert_eq!(serde_json::from_str::<Value>(done(&output)).expect("JSON")["matches"], true);
}

#[test]
fn check_says_where_and_why_a_text_does_not_match() {
    let folder = Folder::new("reject");
    let schema = folder.file("s.json", AGE);
    for (document, offset, parts) in [
        // Which digit is one too many is known at once.
        (r#"{"name": "Z", "age": 151}"#, 23, &["byte 23", "\"0\"", "/properties/age/maximum"][..]),
        (r#"{"name": "", "age": 1}"#, 10, &["/properties/name/minLength"]),
        (r#"{"name": "Z", "age": 1, "#, 22, &["\"0\" to \"9\"", "white space"]),
        (r#"{"name": "Z", "age": 1"#, 22, &["\"}\""]),
        (r#"{"name": "Z"}"#, 12, &["\",\"", "required"]),
        ("", 0, &["\"{\""]),
    ] {
        let path = folder.file("d.json", document);
        let output = run(&["check", "--schema", &schema, &path]);
        assert_eq!(output.status.code(), Some(1), "{document}");
        assert_eq!(stdout(&output), "");
        for part in parts {
            assert!(stderr(&output).contains(part), "{document}: {}", stderr(&output));
        }
        let output = run(&["check", "--json", "--schema", &schema, &path]);
        assert_eq!(output.status.code(), Some(1));
        let verdict: Value = serde_json::from_str(stdout(&output)).expect("JSON");
        assert_eq!((&verdict["matches"], &verdict["offset"]), (&false.into(), &offset.into()));
    }
}

#[test]
fn check_explains_a_form_that_is_not_generated() {
    let folder = Folder::new("narrowed");
    let schema = folder.file("s.json", AGE);
    let document = folder.file("d.json", r#"{"age": 1, "name": "Z"}"#);
    let output = run(&["check", "--schema", &schema, &document]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--property-order"), "{}", stderr(&output));
    done(&run(&["check", "--property-order", "any", "--schema", &schema, &document]));
    let output = run(&["check", "--whitespace", "compact", "--schema", &schema, &document]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn check_names_the_bound_that_a_text_goes_beyond() {
    let folder = Folder::new("beyond");
    let schema = folder.file("s.json", r#"{"type": ["number", "array"]}"#);
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    for (text, reason) in [
        ("1e400", "reason: 1e400 is beyond the numbers of 64 bits"),
        (&deep, "reason: arrays and objects nest at most 127 deep"),
        (&"1".repeat(99), "reason: the number has 99 digits, of which at most 64"),
    ] {
        let path = folder.file("d.json", text);
        let output = run(&["check", "--schema", &schema, &path]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    }
}

#[test]
fn check_refuses_budgets_below_the_shortest_text() {
    let folder = Folder::new("budgets");
    let schema = |most: u32| {
        let text = format!(
            "{{\"required\": [\"a\"], \"type\": \"object\",\n\"properties\": {{\"a\": {{\"enum\": [\"dog\"], \
             \"x-constrain\": {{\"max_tokens\": {most}}}}}}}}}"
        );
        folder.file("s.json", text)
    };
    let tokens = folder.file("t.json", tokenizer(&[]));
    // Quotes and letters are tokens of their own.
    done(&run(&["check", "--schema", &schema(5), "--tokenizer", &tokens]));
    let small = schema(2);
    // Without a vocabulary nobody knows.
    done(&run(&["check", "--schema", &small]));
    let output = run(&["check", "--schema", &small, "--tokenizer", &tokens]);
    assert!(stdout(&output).contains("refused     /properties/a/x-constrain\n"));
    assert_eq!(output.status.code(), Some(2));
    for part in ["takes 5", "/properties/a/x-constrain/max_tokens", "at least 5 tokens"] {
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
    let output = run(&["check", "--json", "--schema", &small, "--tokenizer", &tokens]);
    assert_eq!(output.status.code(), Some(2));
    let report: Value = serde_json::from_str(stdout(&output)).expect("JSON");
    assert_eq!(report["enforceable"], false);
    let document = folder.file("d.json", r#"{"a": "dog"}"#);
    refused(&run(&["check", "--schema", &small, "--tokenizer", &tokens, &document]), &["takes 5"]);
    let grammar = folder.file("g.lark", "start: a\na[max_tokens=1]: \"dog\"\n");
    done(&run(&["check", "--grammar", &grammar]));
    refused(&run(&["check", "--grammar", &grammar, "--tokenizer", &tokens]), &["at least 3"]);
}

#[test]
fn values_are_pieces_of_the_input() {
    let folder = Folder::new("span");
    let schema = folder.file(
        "s.json",
        r#"{"type": ["string", "null"], "x-constrain": {"span": true}, "maxLength": 9}"#,
    );
    let document = folder.file("d.txt", "Ada, 36");
    let check = |answer: &str, more: &[&str]| {
        let answer = folder.file("answer.json", answer);
        run(&[&["check", "--schema", &schema, &answer], more].concat())
    };
    for (answer, accepted) in
        [(r#""da, 3""#, true), (r#""\u0041da""#, true), ("null", true), (r#""Bob""#, false)]
    {
        let output = check(answer, &["--input", &document]);
        assert_eq!(
            output.status.code(),
            Some(i32::from(!accepted)),
            "{answer}: {}",
            stderr(&output)
        );
    }
    refused(&check("null", &[]), &["/x-constrain/span", "--input"]);
    // A look at the schema needs no document.
    assert!(done(&run(&["check", "--schema", &schema])).contains("enforced    /x-constrain"));
    done(&run(&["inspect", "--schema", &schema]));
    let tokens = folder.file("tokenizer.json", tokenizer(&["\"", "A", "d", "B", "null"]));
    let mask = ["mask", "--schema", &schema, "--tokenizer", &tokens, "--after", "\""];
    let output = run(&[&mask[..], &["--input", &document]].concat());
    let listed: Vec<&str> =
        done(&output).lines().filter_map(|line| line.split('\t').nth(1)).collect();
    // Those of the document, and the backslash of escapes.
    assert_eq!(listed, [r#"",""#, r#""3""#, r#""6""#, r#""A""#, r#""\\""#, r#""a""#, r#""d""#]);
    refused(&run(&mask), &["--input"]);
}

#[test]
fn a_compiled_constraint_takes_the_place_of_a_schema() {
    let folder = Folder::new("compile");
    let schema = folder.file(
        "s.json",
        r#"{"type": "object", "properties": {"b": {"type": "null"}, "a": {"type": "boolean"}},
            "required": ["a"], "additionalProperties": false}"#,
    );
    let tokens = folder.file("tokenizer.json", tokenizer(&["{\"", "a", "b", "true"]));
    let file = folder.path("s.constraint");
    let compile = ["compile", "--schema", &schema, "--tokenizer", &tokens, "-o", &file];
    done(&run(&[&compile[..], &["--property-order", "any"]].concat()));
    let mask =
        |more: &[&str]| run(&[&["mask", "--tokenizer", &tokens, "--after", "{\""], more].concat());
    refused(&run(&[&compile[..6], &[&schema]].concat()), &["would overwrite"]);
    let from_file = mask(&["--constraint", &file]);
    let from_schema = mask(&["--schema", &schema, "--property-order", "any"]);
    assert_eq!(done(&from_file), done(&from_schema));
    let wrong = folder.file("d.json", r#"{"a": 1}"#);
    let output = run(&["check", "--constraint", &file, &wrong]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("/properties/a/type") || stderr(&output).contains("boolean"));
    done(&run(&["check", "--constraint", &file]));
    done(&run(&["inspect", "--constraint", &file, "--tokenizer", &tokens]));

    let other = folder.file("other.json", tokenizer(&["x"]));
    let output = run(&["mask", "--constraint", &file, "--tokenizer", &other]);
    refused(&output, &["another vocabulary", "tokenizer of this model"]);
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    let damaged = folder.file("damaged", &bytes);
    refused(&mask(&["--constraint", &damaged]), &["damaged", "checksum"]);
    refused(
        &mask(&["--constraint", &schema]),
        &["s.json\": this is no file of a compiled constraint"],
    );
    let both = ["--constraint", &file, "--whitespace", "compact"];
    assert_eq!(mask(&both).status.code(), Some(2));
}

#[test]
fn mask_lists_the_allowed_tokens() {
    let folder = Folder::new("mask");
    let schema = folder.file("s.json", r#"{"enum": ["true", true, "truth"]}"#);
    let tokens = folder.file("t.json", tokenizer(&["tru", "true", "\"tr", "truth\""]));
    let mask = |after: &str, more: &[&str]| {
        run(&[&["mask", "--schema", &schema, "--tokenizer", &tokens, "--after", after], more]
            .concat())
    };
    let (t, escape) = (id_of("t"), id_of("\\"));
    let expected =
        format!("1\t\"tru\"\n2\t\"true\"\n4\t\"truth\\\"\"\n{escape}\t\"\\\\\"\n{t}\t\"t\"\n");
    assert_eq!(done(&mask("\"", &[])), expected);
    let all = mask("", &["--json"]);
    let all: Value = serde_json::from_str(done(&all)).expect("JSON");
    assert_eq!(all["can_stop"], false);
    let limited = mask("", &["--limit", "2"]);
    assert_eq!(done(&limited).lines().count(), 2);
    assert!(stderr(&limited).contains("2 of "), "{}", stderr(&limited));
    // At the end there is nothing but the token that ends (and white space, which has no token here).
    assert_eq!(done(&mask("\"truth\"", &[])), "0\t</s>\n");
    let output = mask("\"trx", &[]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), ""));
    assert!(stderr(&output).contains("byte 3"), "{}", stderr(&output));
}

/// The id of a visible character in [`tokenizer`] with four tokens before.
fn id_of(token: &str) -> String {
    let mut singles = (b'!'..=b'~').filter(|&byte| byte != b'<');
    let at = singles.position(|byte| token.as_bytes() == [byte]).expect("visible");
    (at + 5).to_string()
}

#[test]
fn a_vocabulary_that_cannot_be_used_is_refused() {
    let folder = Folder::new("vocabulary");
    let schema = folder.file("s.json", "true");
    for content in ["", "{", "{}", "[1]"] {
        let tokens = folder.file("t.json", content);
        refused(&run(&["mask", "--schema", &schema, "--tokenizer", &tokens]), &[]);
    }
    refused(&run(&["mask", "--schema", &schema, "--tokenizer", "missing"]), &["missing"]);
}

/// In this build; with llama.cpp its vocabulary is taken.
#[cfg(not(feature = "llama"))]
#[test]
fn a_model_in_place_of_a_tokenizer_is_told() {
    let folder = Folder::new("gguf");
    let (schema, model) = (folder.file("s.json", AGE), folder.file("m.gguf", "GGUF\u{3}\0\0\0"));
    let out = folder.path("out.constraint");
    for flags in [&["mask"][..], &["inspect"], &["compile", "--output", &out]] {
        let args = [flags, &["--schema", &schema, "--tokenizer", &model]].concat();
        refused(&run(&args), &["m.gguf", "GGUF", "tokenizer.json", "feature llama"]);
    }
}

#[test]
fn the_vocabulary_of_the_model_without_weights_is_one() {
    let folder = Folder::new("scripted");
    let (schema, file) = (folder.file("s.json", AGE), folder.path("s.constraint"));
    let compile = ["compile", "--schema", &schema, "--output", &file, "--tokenizer", "scripted:7"];
    let quiet = run(&[&compile[..], &["-q"]].concat());
    assert_eq!((done(&quiet), stderr(&quiet)), ("", ""));
    let flags = ["--constraint", &file, "--model", "scripted:7", "--seed", "1", "a prompt"];
    let text = stdout(&run(&flags)).to_owned();
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert!(document["age"].is_u64(), "{document}");
}

#[test]
fn inspect_shows_what_was_compiled() {
    let folder = Folder::new("inspect");
    let schema = folder.file("s.json", AGE);
    let output = run(&["inspect", "--schema", &schema]);
    let text = done(&output);
    for part in ["nodes: ", "object \"name\": #", "number integer >= 0 <= 150"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    let tokens = folder.file("t.json", tokenizer(&[]));
    let output = run(&["inspect", "--json", "--schema", &schema, "--tokenizer", &tokens]);
    let value: Value = serde_json::from_str(done(&output)).expect("JSON");
    assert_eq!(value["vocabulary"]["allowed_first"], 1, "{value}");
}

#[test]
fn check_takes_grammars_regexes_and_choices() {
    let folder = Folder::new("check-grammars");
    let sum = folder.file("sum.gbnf", "root ::= root \"+\" n | n\nn ::= [0-9]+\n");
    assert!(done(&run(&["check", "--grammar", &sum])).starts_with("enforced    gbnf"));
    done(&run_with_stdin(&["check", "--grammar", &sum, "-"], "1+23"));
    let output = run_with_stdin(&["check", "--grammar", &sum, "-"], "1+a");
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("1:3 (byte 2)") && said.contains("expected: \"0\" to \"9\""), "{said}");
    let output = run_with_stdin(&["check", "--grammar", &sum, "-"], "1+2\n");
    assert!(stderr(&output).contains("ends with a line feed"), "{}", stderr(&output));

    done(&run_with_stdin(&["check", "--regex", "(ab)+", "-"], "abab"));
    assert_eq!(run_with_stdin(&["check", "--regex", "(ab)+", "-"], "aba").status.code(), Some(1));
    let choices = ["check", "--choice", "yes", "--choice", "no", "-"];
    done(&run_with_stdin(&choices, "no"));
    assert_eq!(run_with_stdin(&choices, "maybe").status.code(), Some(1));

    let lark = folder.file("call.txt", "start: \"<\" %json {\"type\": \"integer\"} \">\"\n");
    let as_lark = ["check", "--grammar", &lark, "--syntax", "lark", "-"];
    done(&run_with_stdin(&as_lark, "<12>"));
    assert_eq!(run_with_stdin(&as_lark, "<\"\">").status.code(), Some(1));
    refused(&run(&["check", "--grammar", &lark]), &["call.txt", "--syntax"]);
}

#[test]
fn a_broken_grammar_is_shown_with_its_line() {
    let folder = Folder::new("broken-grammar");
    let grammar = folder.file("g.gbnf", "root ::= item+\nitem ::= \"a\" ] | b\n");
    for command in [&["check"][..], &["inspect"], &[]] {
        let output = run(&[command, &["--grammar", &grammar]].concat());
        let parts =
            ["expected a literal", "g.gbnf:2:14", "item ::= \"a\" ] | b", "found \"] | b\""];
        refused(&output, &parts);
    }
    let regex = run(&["check", "--regex", "a(b"]);
    refused(&regex, &["--regex", "unclosed group"]);
    refused(&run(&["check", "--choice", ""]), &["one line"]);
    let both = run(&["check", "--grammar", &grammar, "--regex", "a"]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn mask_and_inspect_take_grammars() {
    let folder = Folder::new("mask-grammar");
    let vocabulary = folder.file("tokenizer.json", tokenizer(&["a", "b", "ab", "c"]));
    let args = ["mask", "--regex", "a(b|c)*", "--tokenizer", &vocabulary, "--after", "a"];
    let listed = done(&run(&args)).to_owned();
    assert!(listed.contains("\"b\"") && listed.contains("\"c\""), "{listed}");
    assert!(!listed.contains("\"ab\""), "{listed}");
    let grammar = folder
        .file("g.ebnf", "list = item , { \",\" , item } ; item = \"(\" , list , \")\" | \"x\" ;");
    let shown = done(&run(&["inspect", "--grammar", &grammar])).to_owned();
    assert!(shown.contains("sequence") && shown.contains("repetition"), "{shown}");
    let gbnf = done(&run(&["inspect", "--grammar", &grammar, "--format", "gbnf"])).to_owned();
    assert!(gbnf.starts_with("root ::= "), "{gbnf}");
    let again = folder.file("again.gbnf", gbnf);
    done(&run_with_stdin(&["check", "--grammar", &again, "-"], "x,(x,x)"));
    let dot = done(&run(&["inspect", "--grammar", &grammar, "--format", "dot"])).to_owned();
    assert!(dot.starts_with("digraph") && dot.contains(" -> "), "{dot}");
    let schema = folder.file("s.json", "{\"type\": \"array\"}");
    refused(&run(&["inspect", "--schema", &schema, "--format", "gbnf"]), &["GBNF has no notation"]);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new("pipe");
    let names: Vec<String> = (0..4000).map(|i| format!("\"p{i}\": {{\"const\": {i}}}")).collect();
    let schema = folder.file("s.json", format!("{{\"properties\": {{{}}}}}", names.join(",")));
    let mut command = program(&["check", "--schema", &schema]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
}

#[test]
fn a_model_that_is_not_there_is_refused() {
    let folder = Folder::new("model");
    let schema = folder.file("s.json", AGE);
    let ask = ["--schema", &schema, "a prompt"];
    let output = run(&[&["--model", "no/such.gguf"], &ask[..]].concat());
    refused(&output, &["no/such.gguf", "--model"]);
    let output = program(&ask).env("CONSTRAIN_MODEL", "other.gguf").output().expect("runs");
    refused(&output, &["other.gguf", "CONSTRAIN_MODEL"]);
    for spec in ["nonsense", "a/b:", "a/b/c", "../x/y"] {
        refused(&run(&["pull", "--hf", spec]), &["OWNER/REPO"]);
    }
}

#[test]
fn prompts_and_settings_are_checked_before_the_model() {
    let folder = Folder::new("settings");
    let schema = folder.file("s.json", AGE);
    let missing = folder.path("missing.txt");
    let with = |more: &[&str]| run(&[&["--schema", &schema], more].concat());
    refused(&with(&[]), &["no prompt", "--prompt-file"]);
    refused(&with(&["-", "--input", "-"]), &["standard input"]);
    refused(&with(&["--prompt-file", &missing]), &["missing.txt"]);
    refused(&with(&["p", "--input", &missing]), &["missing.txt"]);
    refused(&with(&["p", "--temperature=-1"]), &["temperature", "-1"]);
    refused(&with(&["p", "--top-p=1.5"]), &["top-p"]);
    refused(&with(&["p", "--min-p=NaN"]), &["min-p"]);
}

#[test]
fn limits_are_raised_by_the_flag_that_messages_name() {
    let folder = Folder::new("limits");
    let long = format!(r#"{{"type": "string", "pattern": "^{}$"}}"#, "ab".repeat(5_000));
    let long = folder.file("long.json", long);
    let with = |flags: &[&str]| run(&[&["check", "--schema", &long], flags].concat());
    let says = |flags: &[&str], part: &str| {
        let output = with(flags);
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    };
    says(&[], "--limits pattern_bytes=N");
    let json = with(&["--json"]);
    assert!(stdout(&json).contains("--limits pattern_bytes=N"), "{}", stdout(&json));
    done(&with(&["--limits", "pattern_bytes=20000"]));
    says(&["--limits", "pattern_bytes=20000,fuel=9"], "--limits fuel=N");
    says(&["--limits", "pattern_bytes=20000", "--limits", "nodes=900,fuel=9"], "--limits fuel=N");
    says(&["--limits", "speed=9"], "enum_entries, pattern_bytes");
    says(&["--limits", "fuel=0"], "from 1");
    // The engine lets nothing through that the judge cannot read.
    let deep = folder.file("deep.json", r##"{"type": "array", "items": {"$ref": "#"}}"##);
    let nested = |depth: usize| folder.file("nested.json", "[".repeat(depth) + &"]".repeat(depth));
    let check = |depth, limits: &[&str]| {
        let text = nested(depth);
        run(&[&["check", "--schema", &deep, &text], limits].concat()).status.code()
    };
    assert_eq!((check(127, &[]), check(128, &[])), (Some(0), Some(1)));
    assert_eq!(check(120, &["--limits", "output_depth=100"]), Some(1));
    assert!(stdout(&run(&["check", "--help"])).contains("fuel=1000000: units of work"));
}

#[test]
fn standard_input_is_one_text() {
    let folder = Folder::new("stdin");
    let age = folder.file("age.json", AGE);
    let vocabulary = folder.file("tokenizer.json", tokenizer(&[]));
    let over = ["--tokenizer", &*vocabulary];
    let twice: [&[&str]; 4] = [
        &["check", "--schema", "-", "-"],
        &["check", "--schema", "-", "--input", "-"],
        &["--schema", "-", "-"],
        &["--grammar", "-", "--syntax", "lark", "--prompt-file", "-"],
    ];
    for flags in twice {
        refused(&run_with_stdin(flags, AGE), &["two inputs are `-`", "from files"]);
    }
    refused(
        &run_with_stdin(&[&["mask", "--schema", "-", "--input", "-"], &over[..]].concat(), AGE),
        &["two inputs are `-`"],
    );
    done(&run_with_stdin(&["check", "--schema", "-"], AGE));
    let output = run_with_stdin(&["check", "--schema", &age, "-"], r#"{"name": "A", "age": 1}"#);
    done(&output);
    done(&run_with_stdin(&["check", "--grammar", "-", "--syntax", "regex"], "a+"));
    refused(&run_with_stdin(&["check", "--constraint", "-"], "x"), &["constrain compile"]);
    // What is written is a file.
    let compile = ["compile", "--schema", &age, "--output", "-"];
    refused(&run(&[&compile, &over[..]].concat()), &["`-`", "name a file"]);
    refused(&run(&["--schema", &age, "--trace", "-", "a prompt"]), &["`-`", "name a file"]);
}

#[test]
fn flags_without_effect_are_refused() {
    let folder = Folder::new("idle");
    let age = folder.file("age.json", AGE);
    let nested =
        r##"{"$defs": {"a": {"properties": {"why": {"type": "string"}}}}, "$ref": "#/$defs/a"}"##;
    let nested = folder.file("nested.json", nested);
    let lark = folder.file("g.lark", "start: \"a\"");
    let json = folder.file("j.lark", "start: %json {\"type\": \"boolean\"}");
    let schema = ["--schema", &*age];
    let cases: [(&[&str], &[&str]); 10] = [
        (
            &["--reasoning-field", "why"],
            &["--reasoning-field has no effect", "\"why\"", "--add-reasoning"],
        ),
        (&["--reasoning-tokens", "9"], &["--reasoning-tokens has no effect", "--add-reasoning"]),
        (&["--strip-reasoning", "a prompt"], &["--strip-reasoning has no effect"]),
        (
            &["--strategy", "greedy", "--draft-max", "3", "p"],
            &["--draft-max has no effect", "lookup"],
        ),
        (
            &["--strategy", "fields", "--soft-landing", "0.5", "p"],
            &["--soft-landing has no effect"],
        ),
        (&["--regex", "a", "--whitespace", "compact"], &["--whitespace has no effect", "--schema"]),
        (&["--choice", "a", "--property-order", "any"], &["--property-order has no effect"]),
        (&["--grammar", &lark, "--add-reasoning"], &["--add-reasoning has no effect"]),
        (&["--grammar", &lark, "--reasoning-tokens", "3"], &["--reasoning-tokens has no effect"]),
        (&["--choice", "a", "--reasoning-field", "a"], &["--reasoning-field has no effect"]),
    ];
    for (flags, parts) in cases {
        let other = ["--regex", "--choice", "--grammar"].contains(&flags[0]);
        let base = if other { &[][..] } else { &schema };
        refused(&run(&[base, flags].concat()), parts);
    }
    // Where they have one, they are taken.
    let checks: [&[&str]; 4] = [
        &["--schema", &nested, "--reasoning-field", "why", "--reasoning-tokens", "9"],
        &[
            "--schema",
            &age,
            "--add-reasoning",
            "--reasoning-field",
            "why",
            "--reasoning-tokens",
            "9",
        ],
        &["--schema", &age, "--whitespace", "compact", "--property-order", "any"],
        &["--grammar", &json, "--whitespace", "compact"],
    ];
    for flags in checks {
        done(&run(&[&["check"], flags].concat()));
    }
    // A text that is no schema is told as that.
    let broken = folder.file("broken.json", "{");
    refused(&run(&["check", "--schema", &broken, "--reasoning-field", "why"]), &["broken.json:1"]);
    for flags in [["--stop", ""], ["--stop-inside", "refuse"], ["--syntax", "gbnf"]] {
        let output = run(&[&["--schema", &*age, "p"], &flags[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(stderr(&output).contains(flags[0]), "{}", stderr(&output));
    }
}

#[cfg(not(feature = "llama"))]
#[test]
fn a_build_without_models_says_how_to_get_them() {
    let folder = Folder::new("without");
    let schema = folder.file("s.json", AGE);
    let output = run(&["--quiet", "--schema", &schema, "a prompt"]);
    refused(&output, &["without llama.cpp", "cmake"]);
}

#[test]
fn shipped_schemas_can_be_enforced() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    for entry in std::fs::read_dir(folder).expect("schemas") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let output = run(&["check", "--schema", &path.to_string_lossy()]);
            assert!(!done(&output).contains("refused"), "{}", path.display());
        }
    }
}

/// The rows of `constrain lab --json` for some flags: id, probability, the stage that took it.
fn lab(flags: &str) -> Vec<(u64, f64, Option<String>)> {
    let args: Vec<&str> = ["lab", "--json"].into_iter().chain(flags.split_whitespace()).collect();
    let output = run(&args);
    let value: Value = serde_json::from_str(done(&output)).expect("JSON");
    let rows = value["tokens"].as_array().expect("an array");
    let logits: Vec<f64> = rows.iter().filter_map(|row| row["logit"].as_f64()).collect();
    assert_eq!(logits, [5.0, 4.6, 4.1, 3.2, 2.9, 2.2, 1.5, 0.9, 0.1, -0.8, -2.0, -4.5]);
    let row = |row: &Value| {
        let taken = row["taken_by"].as_str().map(str::to_string);
        (row["id"].as_u64().expect("an id"), row["p"].as_f64().expect("a number"), taken)
    };
    rows.iter().map(row).collect()
}

#[test]
fn the_lab_shows_what_each_stage_takes() {
    let kept = |flags: &str| lab(flags).iter().filter(|row| row.2.is_none()).count();
    assert_eq!(kept(""), 12);
    for (flags, count) in [
        ("--temperature 0.7 --top-p 0.95", 4),
        ("--temperature 2 --top-p 0.9", 7),
        ("--temperature 1.5 --min-p 0.05", 8),
        ("--top-k 3", 3),
        ("--temperature 0", 1),
        ("--preset chat", 4),
    ] {
        assert_eq!(kept(flags), count, "{flags}");
    }
    let near = |p: f64, expected: f64| assert!((p - expected).abs() < 5e-5, "{p} not {expected}");
    near(lab("")[0].1, 0.4026);
    near(lab("--temperature 2 --frequency-penalty 1 --used 0,0")[0].1, 0.1111);
    let masked = lab("--mask 2,5,8");
    near(masked[5].1, 0.1281);
    assert_eq!(masked[0].2.as_deref(), Some("mask"));
    let all = lab("--mask 0,1,2,3,4,5,6,7,8,9,10 --top-k 5 --top-p 0.9 --min-p 0.2");
    let taken: Vec<_> = all[2..6].iter().map(|row| row.2.as_deref()).collect();
    assert_eq!(taken, [None, Some("min-p"), Some("top-p"), Some("top-k")]);
    assert_eq!((all[11].1, all[11].2.as_deref()), (0.0, Some("mask")));
}

#[test]
fn the_lab_takes_a_schema_and_draws_a_table() {
    let folder = Folder::new("lab");
    let schema = folder.file("s.json", r#"{"properties": {"paid": {"type": "boolean"}}}"#);
    let output = run(&["lab", "--schema", &schema, "--after", "{\"paid\": ", "--top-k", "1"]);
    let table = done(&output);
    assert!(table.contains("mask took 10") && table.contains("top-k 1 took 1"), "{table}");
    assert_eq!(table.lines().filter(|line| line.contains("taken")).count(), 11, "{table}");
    refused(&run(&["lab", "--mask", "12"]), &["no token 12", "0 to 11"]);
    refused(&run(&["lab", "--top-p", "2"]), &["top-p 2 is not between"]);
    let output = run(&["lab", "--schema", &schema, "--after", "{\"paid\": tr"]);
    refused(&output, &["allows none of the twelve"]);
}

#[test]
fn strategies_are_checked_before_the_model() {
    let folder = Folder::new("strategies");
    let schema = folder.file("s.json", "{}");
    let model = ["--model", "/nonexistent/model.gguf"];
    let with = |flags: &[&str]| run(&[&["--schema", &schema, "hello"], &model[..], flags].concat());
    refused(&with(&["--beams", "3"]), &["--beams has no effect", "--strategy beam"]);
    refused(&with(&["--strategy", "contrastive"]), &["second model", "--amateur"]);
    refused(&with(&["--draft", "lookup,model"]), &["second model", "--draft-model"]);
    let output = with(&["--logprobs", "3"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--json"), "{}", stderr(&output));
    let output = with(&["-n", "3", "--temperature", "0", "--frequency-penalty", "1"]);
    assert_eq!(output.status.code(), Some(2), "there is no model");
    let warnings = stderr(&output);
    assert!(warnings.contains("all answers will be the same"), "{warnings}");
    assert!(warnings.contains("penalties also act"), "{warnings}");
}
