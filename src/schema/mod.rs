//! JSON Schema -> grammar.
//!
//! [`compile`] takes the text of a schema and gives the [`Grammar`] of the JSON texts that are valid under
//! it: exactly those, apart from the documented narrowings. No keyword is ever silently ignored: what is not
//! enforced exactly is refused, with the JSON pointer of the keyword. Keywords that no draft defines are
//! annotations.
//!
//! The steps, each in its file:
//!
//! 1. `json`: read the text, strictly, into an arena that knows the place of every value;
//! 2. `resolve` with `dialect`, `metaschemas`: drafts, identifiers, anchors, references;
//! 3. `keywords`, `assemble`, `unevaluated`: one schema object to its *parts*, one per instance type;
//! 4. `normal` with `sets`, `text`, `number`, `array`, `object`: intersection, union and complement of parts;
//! 5. `emit`, `emit_object`, `extent`, `own`: parts to grammar nodes;
//! 6. `satisfiable`: take out what no value satisfies.
//!
//! Beside this, `report` says what becomes of each keyword, and `lint` what is legal but will hurt,
//! `spelling` which names say nothing.
//!
//! Worked example: `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"not":{"required":["b"]}}`.
//! The base has one object shape, with `a` an integer and required. The complement of `required: [b]` has all
//! values that are no objects and the shape "`b` forbidden". The intersection is one shape, `a` required and `b`
//! forbidden; it becomes one object node whose undeclared keys are "any string but `a` and `b`".

use crate::error::{Error, Kind, Result};
use crate::expr::Document;
use crate::grammar::{Grammar, Node, NodeId, PropertyOrder, Terminal, Whitespace};
use crate::limits::{Cancel, Limits};
use std::collections::BTreeMap;

mod array;
mod assemble;
mod dialect;
mod draft;
mod emit;
mod emit_object;
mod extent;
mod json;
mod keywords;
mod lint;
mod metaschemas;
mod names;
mod normal;
mod number;
mod object;
mod own;
mod report;
mod resolve;
mod satisfiable;
mod sets;
mod spelling;
mod text;
mod unevaluated;
mod uri;

pub use draft::Draft;
pub use emit_object::REASONING_FIELDS;
pub use lint::{Lint, Warning, lint};
pub use report::{Entry, Report, Status, report};

/// How to read a schema and what to write.
#[derive(Debug, Clone)]
pub struct Options {
    /// In which order the keys of objects come.
    pub property_order: PropertyOrder,
    /// White space in the output.
    pub whitespace: Whitespace,
    /// The property that comes first in its object; by default `reasoning`, `rationale`, `thinking`,
    /// `explanation`, `analysis` or `scratchpad`, where declared.
    pub reasoning_field: Option<String>,
    /// Add a required string property to the front of the root object, named by `reasoning_field`
    /// or `reasoning`.
    pub add_reasoning: bool,
    /// Most tokens of a reasoning field, wherever one comes first.
    pub reasoning_tokens: Option<u32>,
    /// Whether `format` constrains (known formats only) or is an annotation.
    pub assert_formats: bool,
    /// The draft, whatever `$schema` says.
    pub draft: Option<Draft>,
    /// Other documents that references may lead to: URI to JSON text. Nothing is ever fetched.
    pub documents: BTreeMap<String, String>,
    /// What the values of strings with `"x-constrain": {"span": true}` are pieces of.
    pub document: Option<Document>,
    /// Budgets.
    pub limits: Limits,
    /// What stops the compilation from another thread.
    pub cancel: Option<Cancel>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            property_order: PropertyOrder::default(),
            whitespace: Whitespace::default(),
            reasoning_field: None,
            add_reasoning: false,
            reasoning_tokens: None,
            assert_formats: true,
            draft: None,
            documents: BTreeMap::new(),
            document: None,
            limits: Limits::default(),
            cancel: None,
        }
    }
}

/// The grammar of the JSON texts that are valid under the schema.
///
/// ```no_run
/// let schema = r#"{"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}}"#;
/// let grammar = constrain::schema::compile(schema, &constrain::schema::Options::default())?;
/// # Ok::<(), constrain::Error>(())
/// ```
///
/// # Errors
/// [`Kind::Syntax`], [`Kind::TooDeep`], [`Kind::TooLarge`] for a text that is no schema; [`Kind::BadRef`],
/// [`Kind::BadRegex`] for what it refers to; [`Kind::Unsupported`] for what is not enforced;
/// [`Kind::Unsatisfiable`] if no value is valid; [`Kind::TooComplex`] beyond the budgets. All with the JSON
/// pointer, line and column where known.
pub fn compile(text: &str, options: &Options) -> Result<Grammar> {
    let mut compiler = normal::Compiler::new(text, options)?;
    let root = compiler.root_node()?;
    compiler.fill_nodes()?;
    compiler.check_equal_inside()?;
    compiler.keep_satisfiable(root)?;
    let mut grammar = compiler.grammar;
    // White space may stand around the document.
    let margin = grammar.add(Node::Terminal(Terminal::Margin));
    let document = grammar.add(Node::Seq(vec![margin, root, margin]));
    grammar.set_root(document);
    grammar.whitespace = options.whitespace;
    Ok(grammar)
}

/// Adds the JSON texts of a schema to a grammar that has other nodes: for documents that are a part
/// of what is generated. No white space surrounds the document; the grammar's own white space is not
/// changed. Budgets are those of the options.
///
/// # Errors
/// As [`compile`].
pub fn compile_into(grammar: Grammar, text: &str, options: &Options) -> Result<(Grammar, NodeId)> {
    let mut compiler = normal::Compiler::new(text, options)?;
    compiler.grammar = grammar;
    let root = compiler.root_node()?;
    compiler.fill_nodes()?;
    compiler.check_equal_inside()?;
    compiler.keep_satisfiable(root)?;
    Ok((compiler.grammar, root))
}

impl normal::Compiler<'_> {
    /// The node of the whole schema.
    fn root_node(&mut self) -> Result<NodeId> {
        let root = self.schema_set(0, 0)?;
        if !self.options.add_reasoning {
            return Ok(self.node(root));
        }
        let parts = self.parts(root)?;
        if parts.objects.is_empty() {
            let message = "a reasoning field can only be added to an object, and the schema's root allows none";
            return Err(Error::new(Kind::BadArgument, message).at(self.json.place(0)));
        }
        let field = self.options.reasoning_field.as_deref().unwrap_or("reasoning");
        let name = self.names.intern(field);
        let mut nodes = Vec::new();
        for shape in &parts.objects {
            let mut shape = (**shape).clone();
            if let Some(named) = shape.named.iter_mut().find(|named| named.name == name) {
                named.required = true;
            } else {
                let set = sets::Kinds::String.set();
                shape.named.insert(0, object::Named { name, set, required: true });
                shape.max = shape.max.map(|max| max.saturating_add(1));
                shape.min = shape.min.saturating_add(u64::from(shape.min > 0));
            }
            self.object_nodes(&shape, &mut nodes)?;
        }
        let arms = nodes.into_iter().map(|node| self.grammar.add(node)).collect();
        let whole = self.grammar.add(Node::Alt(arms));
        if let Some(tokens) = self.tokens(root)? {
            self.bound(whole, tokens);
        }
        Ok(whole)
    }
}
