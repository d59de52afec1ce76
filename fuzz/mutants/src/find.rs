//! The places of a source file that can be mutated, each by text that is put before or after something: so mutants may
//! stand in each other. No text has a new line: lines keep their numbers.

use proc_macro2::LineColumn;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Text that goes in at a place, `{}` standing for the mutant's number: it opens something after it, or closes
/// something before it.
#[derive(Debug, Clone)]
pub struct Edit {
    pub place: LineColumn,
    pub opens: bool,
    pub text: String,
}

/// What a mutant does to its place.
#[derive(Debug, Clone)]
pub struct Mutant {
    pub edits: Vec<Edit>,
    pub place: LineColumn,
    /// In words, for the report.
    pub what: String,
}

fn open(place: LineColumn, text: impl Into<String>) -> Edit {
    Edit { place, opens: true, text: text.into() }
}

fn close(place: LineColumn, text: impl Into<String>) -> Edit {
    Edit { place, opens: false, text: text.into() }
}

/// The mutants of a file, the outer ones before those in them.
pub fn mutants(source: &str) -> syn::Result<Vec<Mutant>> {
    let file = syn::parse_file(source)?;
    let mut finder = Finder::default();
    finder.visit_file(&file);
    Ok(finder.found)
}

#[derive(Default)]
struct Finder {
    found: Vec<Mutant>,
    /// Inside something that is computed when compiling.
    constant: usize,
    function: String,
}

impl Finder {
    fn add(&mut self, edits: Vec<Edit>, what: String) {
        if self.constant == 0 {
            let (place, what) = (edits[0].place, format!("{}: {what}", self.function));
            self.found.push(Mutant { edits, place, what });
        }
    }

    /// The function does nothing and returns something of its type.
    fn replace_body(&mut self, output: &syn::ReturnType, block: &syn::Block) {
        if block.stmts.is_empty() {
            return;
        }
        let start = block.brace_token.span.open().end();
        for value in values(output) {
            let text = format!(" if crate::mutants::on({{}}) {{ return {value}; }}");
            self.add(vec![open(start, text)], format!("returns {value}").trim().to_owned());
        }
    }

    fn function<'a>(
        &mut self,
        (attrs, sig, block): (&[syn::Attribute], &'a syn::Signature, Option<&'a syn::Block>),
        inner: impl FnOnce(&mut Self),
    ) {
        if is_test(attrs) {
            return;
        }
        let outer = std::mem::replace(&mut self.function, sig.ident.to_string());
        let constant = usize::from(sig.constness.is_some());
        self.constant += constant;
        if let Some(block) = block {
            self.replace_body(&sig.output, block);
        }
        inner(self);
        self.constant -= constant;
        self.function = outer;
    }

    /// A condition that is the other way round.
    fn negate(&mut self, condition: &syn::Expr) {
        if has_let(condition) {
            return;
        }
        let span = condition.span();
        let edits = vec![open(span.start(), "crate::mutants::on({}) ^ ("), close(span.end(), ")")];
        self.add(edits, "negated condition".to_owned());
    }

    /// An operand before a lazy operator counts for nothing: the other one alone decides.
    fn drop_left(&mut self, item: &syn::ExprBinary) {
        let (sign, switch) = match item.op {
            syn::BinOp::And(_) => ("&&", ") || crate::mutants::on({}))"),
            _ => ("||", ") && !crate::mutants::on({}))"),
        };
        let left = item.left.span();
        let edits = vec![open(left.start(), "(("), close(left.end(), switch)];
        self.add(edits, format!("the left of {sign} dropped"));
    }
}

impl<'a> Visit<'a> for Finder {
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.function((&item.attrs, &item.sig, Some(&item.block)), |finder| {
            visit::visit_item_fn(finder, item);
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.function((&item.attrs, &item.sig, Some(&item.block)), |finder| {
            visit::visit_impl_item_fn(finder, item);
        });
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        // What prints for people and for debugging is no part of the engine.
        let name = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        let skipped = name.is_some_and(|name| name.ident == "Debug" || name.ident == "Display");
        if !skipped && !is_test(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_const(&mut self, _: &'a syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'a syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'a syn::ImplItemConst) {}
    fn visit_pat(&mut self, _: &'a syn::Pat) {}
    fn visit_type(&mut self, _: &'a syn::Type) {}

    fn visit_expr_if(&mut self, item: &'a syn::ExprIf) {
        self.negate(&item.cond);
        visit::visit_expr_if(self, item);
    }

    fn visit_arm(&mut self, arm: &'a syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.negate(guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_binary(&mut self, item: &'a syn::ExprBinary) {
        use syn::BinOp::{Add, And, Eq, Ge, Gt, Le, Lt, Ne, Or, Sub};
        let (left, right) = (item.left.span(), item.right.span());
        let (start, end) = (left.start(), right.end());
        let operator = |from: &str, to: &str| format!("{from} became {to}");
        let (function, what) = match item.op {
            And(_) | Or(_) if !has_let(&item.left) => {
                self.drop_left(item);
                return visit::visit_expr_binary(self, item);
            }
            Lt(_) => ("lt", operator("<", "<=")),
            Le(_) => ("le", operator("<=", "<")),
            Gt(_) => ("gt", operator(">", ">=")),
            Ge(_) => ("ge", operator(">=", ">")),
            Eq(_) => ("eq", operator("==", "!=")),
            Ne(_) => ("ne", operator("!=", "==")),
            Add(_) => ("add", operator("+", "-")),
            Sub(_) => ("sub", operator("-", "+")),
            _ => return visit::visit_expr_binary(self, item),
        };
        // `lt(17, &(a), &(b))` in the place of `a < b`.
        let by = if matches!(item.op, Add(_) | Sub(_)) { "(" } else { "&(" };
        let sign = item.op.span();
        let edits = vec![
            open(start, format!("crate::mutants::{function}({{}}, {by}")),
            close(left.end(), format!("), {by}")),
            // With a blank: `/*!` begins a comment of another kind.
            open(sign.start(), "/* "),
            close(sign.end(), " */"),
            close(end, "))"),
        ];
        self.add(edits, what);
        visit::visit_expr_binary(self, item);
    }
}

/// Whether something is compiled for tests only.
fn is_test(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|attr| {
        attr.path().is_ident("test")
            || attr.path().is_ident("cfg")
                && attr.parse_args::<syn::Ident>().is_ok_and(|ident| ident == "test")
    })
}

/// Whether `let` stands in a condition, which then cannot stand in parentheses.
fn has_let(condition: &syn::Expr) -> bool {
    match condition {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// Values to return in place of what a function computes, as far as its type tells.
fn values(output: &syn::ReturnType) -> Vec<&'static str> {
    let syn::ReturnType::Type(_, output) = output else {
        return vec![""];
    };
    match type_name(output).as_str() {
        "bool" => vec!["true", "false"],
        "usize" | "u8" | "u16" | "u32" | "u64" | "i64" => vec!["0", "1"],
        "Option" => vec!["None"],
        "Vec" => vec!["Vec::new()"],
        "Result<()>" => vec!["Ok(())"],
        "Result<bool>" => vec!["Ok(true)", "Ok(false)"],
        "ExprId" => vec!["ExprId::NEVER", "ExprId::ANY"],
        _ => vec![],
    }
}

/// The name of a type, for `Result` of `()` and of `bool` with what is in it.
fn type_name(output: &syn::Type) -> String {
    let syn::Type::Path(path) = output else {
        return String::new();
    };
    let Some(last) = path.path.segments.last() else {
        return String::new();
    };
    let name = last.ident.to_string();
    let syn::PathArguments::AngleBracketed(inner) = &last.arguments else {
        return name;
    };
    match inner.args.first() {
        Some(syn::GenericArgument::Type(syn::Type::Tuple(unit))) if unit.elems.is_empty() => {
            format!("{name}<()>")
        }
        Some(syn::GenericArgument::Type(syn::Type::Path(path)))
            if name == "Result" && path.path.is_ident("bool") =>
        {
            "Result<bool>".to_owned()
        }
        _ => name,
    }
}
