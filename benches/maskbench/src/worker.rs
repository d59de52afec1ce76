//! Measures cases: one comes in as a line, one [`Record`] goes out as a line.
use crate::case::Case;
use crate::engine::{self, Budget, Compiled, Engine, Sequence, Source};
use crate::generate::{Generator, Wanted};
use crate::record::{Record, Verdict};
use crate::tokens::Tokens;
use crate::{EngineArgs, PropertyOrder};
use anyhow::{Context, Result, anyhow, bail};
use std::io::{BufRead, Write};
use std::time::Instant;

/// A schema that every engine compiles and runs once before it is measured, so that what an engine
/// keeps with the vocabulary is there: strings, numbers, white space, literals.
const WARM_UP: &str = r#"{"type": "object", "properties": {"a": {"type": "string"},
    "b": {"type": "number"}, "c": {"type": "array", "items": {"type": "boolean"}}}}"#;
const WARM_UP_TEXT: &str = r#"{"a": "x\n y", "b": -1.5e3, "c": [true, false]}"#;

/// Serves cases from standard input until it ends.
pub fn serve(args: &EngineArgs) -> Result<()> {
    let path = &args.tokenizer;
    let json = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let tokens = Tokens::new(&json)?;
    let engine = engine::new(args.engine, &json, &tokens)?;
    let mut bench = Bench {
        mask: vec![0; tokens.len().div_ceil(32)],
        generator: Generator::new(&tokens),
        engine: &*engine,
        tokens: &tokens,
        args,
    };
    bench.warm_up()?;
    let mut out = std::io::stdout().lock();
    // The first line says that the worker is ready.
    writeln!(out, "ready")?;
    out.flush()?;
    for line in std::io::stdin().lock().lines() {
        let case: Case = serde_json::from_str(&line?)?;
        serde_json::to_writer(&mut out, &bench.measure(&case)?)?;
        writeln!(out)?;
        out.flush()?;
    }
    Ok(())
}

/// An engine and what is shared by all cases.
struct Bench<'a> {
    engine: &'a dyn Engine,
    tokens: &'a Tokens,
    generator: Generator<'a>,
    args: &'a EngineArgs,
    /// The caller's buffer.
    mask: Vec<u32>,
}

impl Bench<'_> {
    fn warm_up(&mut self) -> Result<()> {
        let source = Source::Schema(WARM_UP);
        let mut compiled = self.engine.compile(source, PropertyOrder::Declared)?;
        let verdict = self.test(&mut *compiled, WARM_UP_TEXT, true, &mut Vec::new());
        match verdict.accepted {
            true => Ok(()),
            false => bail!("the engine does not accept the warm-up document: {verdict:?}"),
        }
    }

    fn measure(&mut self, case: &Case) -> Result<Record> {
        let source = match (&case.schema, &case.grammar, &case.syntax) {
            (Some(schema), None, _) => Source::Schema(schema.get()),
            (None, Some(grammar), Some(syntax)) => Source::Grammar(grammar, syntax),
            _ => bail!("case {} has neither a schema nor a grammar with a syntax", case.id),
        };
        let order = case.options.property_order.unwrap_or(self.args.property_order);
        let engine = self.engine;
        let mut record =
            Record { id: case.id.clone(), expect: case.expect.clone(), ..Record::default() };
        let started = Instant::now();
        let first = engine.compile(source, order).and_then(|mut compiled| {
            let mut sequence = self.start(&mut *compiled)?;
            sequence.fill(&mut self.mask)?;
            Ok((compiled, sequence))
        });
        record.ttfm_ns = nanoseconds(started);
        let mut compiled = match first {
            Ok((compiled, _)) => compiled,
            Err(error) => {
                record.compile_error = Some(format!("{error:#}"));
                return Ok(record);
            }
        };
        for test in &case.tests {
            let verdict = self.test(&mut *compiled, &test.text(), test.valid, &mut record.masks_ns);
            record.tests.push(verdict);
        }
        if let (Source::Schema(schema), 1..) = (source, self.args.generate) {
            let (generator, mask) = (&self.generator, &mut self.mask);
            let budget = self.args.budget.as_deref().map(str::parse::<Budget>);
            let budget = budget.transpose().map_err(|reason| anyhow!("--budget: {reason}"))?;
            let wanted = Wanted { count: self.args.generate, budget };
            record.generated = generator.run(&mut *compiled, &case.id, schema, wanted, mask)?;
        }
        Ok(record)
    }

    /// A sequence for a document, under the budget if there is one for them.
    fn start(&self, compiled: &mut dyn Compiled) -> Result<Box<dyn Sequence>> {
        let Some(tokens) = self.args.within else { return compiled.start() };
        match compiled.start_within(Budget::Tokens(tokens))? {
            Some((sequence, _)) => Ok(sequence),
            None => bail!("no document within {tokens} tokens"),
        }
    }

    /// Matches one text from the start.
    fn test(
        &mut self,
        compiled: &mut dyn Compiled,
        text: &str,
        valid: bool,
        masks_ns: &mut Vec<u64>,
    ) -> Verdict {
        let accepted = self.tokens.encode(text).and_then(|tokens| {
            if self.args.warm {
                self.matches(&mut *self.start(compiled)?, &tokens, &mut Vec::new())?;
            }
            let mut sequence = self.start(compiled)?;
            self.matches(&mut *sequence, &tokens, masks_ns)
        });
        match accepted {
            Ok(accepted) => Verdict { valid, accepted, error: None },
            Err(error) => Verdict { valid, accepted: false, error: Some(format!("{error:#}")) },
        }
    }

    fn matches(
        &mut self,
        sequence: &mut dyn Sequence,
        tokens: &[u32],
        masks_ns: &mut Vec<u64>,
    ) -> Result<bool> {
        for &token in tokens {
            let started = Instant::now();
            sequence.fill(&mut self.mask)?;
            if self.mask[token as usize / 32] >> (token % 32) & 1 == 0 {
                return Ok(false);
            }
            sequence.accept(token)?;
            masks_ns.push(nanoseconds(started));
        }
        sequence.can_stop()
    }
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
