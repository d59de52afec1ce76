//! `constrain inspect`: what a schema or a grammar compiles to.
//!
//! One line per node of the grammar that the root reaches, numbered in the order in which they are
//! met. For `{"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}`:
//!
//! ```text
//!   #0 sequence #1 #2 #1
//!   #1 white space around the document
//!   #2 object "a": #3, any other key: #4
//!   ...
//! ```

use crate::args::{InspectArgs, InspectFormat};
use crate::compile::Form;
use crate::input;
use crate::model;
use crate::report::Failure;
use constrain::error::quote;
use constrain::grammar::{
    ArraySpec, ItemClass, Node, NodeId, NumberSpec, ObjectSpec, PropertyOrder, SpecialSpec,
    Terminal,
};
use constrain::{Grammar, Vocabulary};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::process::ExitCode;

/// Characters of an expression that are shown.
const EXPRESSION_CHARS: usize = 60;

/// Runs the sub-command.
pub fn run(args: &InspectArgs) -> Result<ExitCode, Failure> {
    let form = Form::read(&args.schema)?.without_document();
    let grammar = form.compile()?;
    match args.format {
        InspectFormat::Text => {}
        InspectFormat::Gbnf => {
            input::print(&grammar.to_gbnf()?)?;
            return Ok(ExitCode::SUCCESS);
        }
        InspectFormat::Dot => {
            input::print(&grammar.to_dot())?;
            return Ok(ExitCode::SUCCESS);
        }
    }
    let vocabulary = args.tokenizer.as_deref().map(model::vocabulary).transpose()?;
    let over = match &vocabulary {
        Some(vocabulary) => Some(over_vocabulary(&form, &grammar, vocabulary)?),
        None => None,
    };
    let listing = Listing::new(&grammar);
    let lines: Vec<(&'static str, String)> =
        listing.order.iter().map(|&id| listing.describe(id)).collect();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for (kind, _) in &lines {
        *kinds.entry(kind).or_default() += 1;
    }
    let text = match args.json {
        true => {
            let nodes: Vec<String> =
                lines.iter().map(|(kind, detail)| format!("{kind} {detail}")).collect();
            let value = json!({
                "nodes": nodes,
                "kinds": kinds,
                "expressions": grammar.exprs.len(),
                "vocabulary": over,
            });
            format!("{value:#}\n")
        }
        false => listing_text(&lines, &kinds, &grammar, over.as_ref()),
    };
    input::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// What can be said about the first step over a vocabulary.
fn over_vocabulary(
    form: &Form,
    grammar: &Grammar,
    vocabulary: &Vocabulary,
) -> Result<Value, Failure> {
    let constraint = form.constraint(grammar, vocabulary)?;
    let min_tokens = Some(constraint.min_tokens()?).filter(|&min| min != u64::MAX);
    let mut matcher = constraint.matcher();
    let allowed = matcher.mask()?.count();
    Ok(json!({
        "tokens": vocabulary.len(),
        "end_tokens": vocabulary.end_tokens(),
        "trie_nodes": vocabulary.trie().len(),
        "longest_token_bytes": vocabulary.trie().max_len(),
        "min_tokens": min_tokens,
        "min_tokens_exact": constraint.min_tokens_is_exact()?,
        "allowed_first": allowed,
        "forced_first": String::from_utf8_lossy(&matcher.forced_bytes()),
    }))
}

fn listing_text(
    lines: &[(&'static str, String)],
    kinds: &BTreeMap<&str, usize>,
    grammar: &Grammar,
    over: Option<&Value>,
) -> String {
    let counts: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let mut out = format!("nodes: {} ({})\n", lines.len(), counts.join(", "));
    let _ = writeln!(out, "expressions: {}", grammar.exprs.len());
    if let Some(over) = over.and_then(Value::as_object) {
        for (name, value) in over {
            let _ = writeln!(out, "{}: {value}", name.replace('_', " "));
        }
    }
    for (number, (kind, detail)) in lines.iter().enumerate() {
        let _ = writeln!(out, "  #{number} {kind} {detail}");
    }
    out
}

/// The nodes that the root reaches, and their numbers.
struct Listing<'a> {
    grammar: &'a Grammar,
    order: Vec<NodeId>,
    numbers: HashMap<NodeId, usize>,
}

impl<'a> Listing<'a> {
    fn new(grammar: &'a Grammar) -> Self {
        let mut listing = Self { grammar, order: Vec::new(), numbers: HashMap::new() };
        let mut todo = vec![grammar.root()];
        while let Some(id) = todo.pop() {
            if listing.numbers.contains_key(&id) {
                continue;
            }
            listing.numbers.insert(id, listing.order.len());
            listing.order.push(id);
            let mut below = grammar.node(id).children();
            below.reverse();
            todo.extend(below);
        }
        listing
    }

    fn number(&self, id: NodeId) -> String {
        self.numbers.get(&id).map_or_else(String::new, |number| format!("#{number}"))
    }

    fn numbers(&self, ids: &[NodeId]) -> String {
        ids.iter().map(|&id| self.number(id)).collect::<Vec<_>>().join(" ")
    }

    /// What kind of node it is, and its details.
    fn describe(&self, id: NodeId) -> (&'static str, String) {
        match self.grammar.node(id) {
            Node::Never => ("never", String::new()),
            Node::Empty => ("empty", String::new()),
            Node::Terminal(terminal) => self.terminal(terminal),
            Node::Seq(parts) => ("sequence", self.numbers(parts)),
            Node::Alt(arms) => ("choice", self.numbers(arms)),
            Node::Repeat { item, min, max, .. } => {
                ("repetition", self.number(*item) + &bounds(*min, *max))
            }
            Node::Rule(target) => ("same as", self.number(*target)),
            Node::Within { item, tokens } => {
                ("budget", format!("{} within {tokens} tokens", self.number(*item)))
            }
            Node::Array(spec) => ("array", self.array(spec)),
            Node::Object(spec) => ("object", self.object(spec)),
        }
    }

    fn terminal(&self, terminal: &Terminal) -> (&'static str, String) {
        let expression = |id| self.grammar.exprs.display(id, EXPRESSION_CHARS);
        match terminal {
            Terminal::Text(id) => ("text", expression(*id)),
            Terminal::String(id) => ("string", expression(*id)),
            Terminal::Format(format) => ("format", format!("{format:?}")),
            Terminal::Number(spec) => ("number", number(spec)),
            Terminal::Margin => ("white space", "around the document".to_string()),
            Terminal::Special(SpecialSpec::Named(name)) => ("special token", quote(name)),
            Terminal::Special(SpecialSpec::Id(id)) => ("special token", id.to_string()),
            Terminal::Special(SpecialSpec::Not(not)) => ("token", format!("none of {}", not.len())),
        }
    }

    fn array(&self, spec: &ArraySpec) -> String {
        let class = |items: &[ItemClass]| {
            let ids: Vec<NodeId> = items.iter().map(|item| item.node).collect();
            self.numbers(&ids).replace(' ', " or ")
        };
        let mut parts: Vec<String> = spec.prefix.iter().map(|items| class(items)).collect();
        if !spec.rest.is_empty() {
            parts.push(format!("then {}", class(&spec.rest)));
        }
        let unique = match (spec.unique, spec.equal) {
            (true, _) => ", unique",
            (_, true) => ", two of them equal",
            _ => "",
        };
        parts.join(", ") + &bounds(spec.min, spec.max) + unique
    }

    fn object(&self, spec: &ObjectSpec) -> String {
        let mut parts: Vec<String> = spec
            .properties
            .iter()
            .map(|property| {
                let optional = if property.required { "" } else { "?" };
                format!("{}{optional}: {}", quote(&property.name), self.number(property.value))
            })
            .collect();
        for other in &spec.others {
            let keys = self.grammar.exprs.display(other.keys, EXPRESSION_CHARS);
            parts.push(format!("keys {keys}: {}", self.number(other.value)));
        }
        let order = if spec.order == PropertyOrder::Any { ", in any order" } else { "" };
        parts.join(", ") + &bounds(spec.min, spec.max) + order
    }
}

fn number(spec: &NumberSpec) -> String {
    let mut out = String::from(match (spec.integer, spec.fractional) {
        (true, _) => "integer",
        (_, true) => "with a fraction",
        _ => "any",
    });
    for (bound, signs) in [(&spec.min, [">=", ">"]), (&spec.max, ["<=", "<"])] {
        if let Some((value, is_exclusive)) = bound {
            let _ = write!(out, " {} {value}", signs[usize::from(*is_exclusive)]);
        }
    }
    for value in &spec.multiple_of {
        let _ = write!(out, " multiple of {value}");
    }
    for value in &spec.not_multiple_of {
        let _ = write!(out, " not a multiple of {value}");
    }
    out
}

fn bounds(min: u64, max: Option<u64>) -> String {
    match (min, max) {
        (0, None) => String::new(),
        (min, None) => format!(" ({min} and more)"),
        (min, Some(max)) => format!(" ({min} to {max})"),
    }
}
