//! What an open object owes, put together from the texts of its members.
//!
//! An object that may end once its required keys are there owes those that are missing, each with its colon and
//! value, and its brace. In the endgame this is asked for every key that may come next, with the others left. So the
//! text of a member is made once, for an object inside so many containers, and copied from then on.
//!
//! By hand: of `{"a": boolean, "b": string}`, both required, the members are `,"a":true` and `,"b":""`. After `"a":false`
//! the object owes `,"b":""}`; after `"b":"x"` it owes `,"a":true}`.
//!
//! Invariant: the pieces are those of [`super::owed::Owed::object`], which plans all other objects.

use std::sync::{Arc, Mutex, OnceLock};

use hashbrown::HashMap;

use super::nodes::Nodes;
use super::owed::Phase;
use super::texts::{self, Piece, Pieces};
use super::{Costs, NEVER, lock};
use crate::grammar::NodeId;
use crate::machine::Program;
use crate::machine::stack::Seen;
use crate::machine::states::{Excess, Punct};
use crate::machine::values::AllowId;

/// The members of the objects of a grammar, by object and depth.
#[derive(Debug, Default)]
pub struct Members {
    known: Mutex<HashMap<(NodeId, u8), Texts>>,
}

/// The texts of the members of one object, made when they are asked for.
type Texts = Arc<[OnceLock<Pieces>]>;

impl Costs {
    /// What the object `id` owes after a member, inside `depth` containers, itself counted; `None` if it is to be
    /// planned.
    pub(super) fn plain_rest(
        &self,
        (program, nodes): (&Program, &Nodes),
        (id, depth): (NodeId, u8),
        phase: Phase,
        seen: &Seen,
    ) -> Option<Pieces> {
        if phase != Phase::After || seen.allow != AllowId::ANY {
            return None;
        }
        let (table, spec) = (program.object_table(id)?, program.object(id)?);
        let missing = table.plain_missing(program, spec, seen, depth)?;
        let members = Arc::clone(
            lock(&self.members.known)
                .entry((id, depth))
                .or_insert_with(|| spec.properties.iter().map(|_| OnceLock::new()).collect()),
        );
        let mut pieces: Pieces = Some(Vec::new());
        for key in missing {
            let member = members.get(key as usize)?;
            let member = member.get_or_init(|| self.member(program, nodes, (id, depth), key));
            let Some(member) = member.as_deref() else { return Some(None) };
            texts::append(&mut pieces, member);
        }
        let close = self.punct(program, Punct::CloseObject, depth);
        pieces = pieces.filter(|_| close.is_some());
        texts::append(&mut pieces, close.as_slice());
        Some(pieces)
    }

    /// A comma, a declared key, a colon and the value.
    fn member(
        &self,
        program: &Program,
        nodes: &Nodes,
        (id, depth): (NodeId, u8),
        key: u32,
    ) -> Pieces {
        let spec = program.object(id)?;
        let property = spec.properties.get(key as usize)?;
        let key = self.keys(id, spec).get(key as usize).copied();
        key.filter(|&tokens| tokens != NEVER)?;
        let value = nodes.tokens(self, program, property.value, depth);
        let value =
            self.node_pieces(program, nodes, property.value, depth).filter(|_| value != NEVER)?;
        let mut pieces = Some(vec![self.punct(program, Punct::Comma, depth)?]);
        texts::append(&mut pieces, &[Piece::Text(super::prices::spelled(&property.name))]);
        texts::append(&mut pieces, &[self.punct(program, Punct::Colon, depth)?]);
        texts::append(&mut pieces, (*value).as_deref()?);
        pieces
    }

    /// A punctuation, if it can be spelled.
    fn punct(&self, program: &Program, punct: Punct, depth: u8) -> Option<Piece> {
        let state = program.punct(punct, depth);
        let tokens = self.terminal(program, state, Excess::NONE);
        (tokens != NEVER).then(|| self.terminal_pieces(program, state, Excess::NONE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Constraint;
    use crate::cost::nodes::Price;
    use crate::cost::owed::Owed;
    use crate::error::Result;
    use crate::grammar::PropertyOrder;
    use crate::limits::Fuel;
    use crate::schema::{self, Options};
    use crate::vocab::{Token, Vocabulary};

    #[test]
    fn as_they_are_planned() -> Result<()> {
        let mut tokens: Vec<Token> = (0..=255u8).map(|byte| Token::Text([byte].into())).collect();
        tokens.push(Token::Special("<end>".into()));
        let vocabulary = Vocabulary::new(tokens, vec![256])?;
        let schema = r##"{"properties": {"a": {"type": "boolean"}, "b": {"type": "array", "items": {"$ref": "#"}, "minItems": 2},
            "c": {"const": [1]}, "d": {"type": "string"}}, "required": ["a", "c", "d"], "type": "object"}"##;
        for property_order in [PropertyOrder::Declared, PropertyOrder::Any] {
            let options = Options { property_order, ..Options::default() };
            let constraint = Constraint::new(&schema::compile(schema, &options)?, &vocabulary)?;
            let (program, costs) = (&constraint.basis().program, constraint.costs());
            let nodes = costs.nodes(program)?;
            let objects: Vec<_> = program
                .grammar()
                .nodes()
                .map(|(id, _)| id)
                .filter(|&id| program.object(id).is_some_and(|spec| spec.properties.len() == 4))
                .collect();
            assert!(!objects.is_empty());
            for id in objects {
                let Some(table) = program.object_table(id) else { continue };
                let mut seen = Seen::default();
                for key in 0..4 {
                    seen = table.with_declared(&seen, key);
                    let found = costs.plain_rest((program, nodes), (id, 1), Phase::After, &seen);
                    let value =
                        |id, depth| (Price::tokens(nodes.tokens(costs, program, id, depth)), 0);
                    let mut owed = Owed::new(costs, program, &value).placed().recording();
                    owed.object(id, 1, Phase::After, &seen, &mut Fuel::new(1_000))?;
                    let items = owed.recorded().expect("it can be planned");
                    let values = |id, depth| costs.node_pieces(program, nodes, id, depth);
                    assert_eq!(found, Some(costs.assemble(program, &items, &values)), "{key}");
                }
            }
        }
        Ok(())
    }
}
