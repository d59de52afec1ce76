//! How often a matcher found what it asked for, and how often it had to be computed.
//!
//! A shared counter would cost a warm step more than the step itself. So a matcher counts for itself, and
//! hands its counts over when it computes something, which takes long anyway, and when it is dropped.

use crate::constraint::Constraint;

/// The counts of one matcher since it last handed them over. A clone begins with none.
pub(super) struct Tally {
    constraint: Constraint,
    /// Masks that were known.
    pub masks: u64,
    /// Moves that were known.
    pub moves: u64,
}

impl Tally {
    /// No counts, for a matcher of this constraint.
    pub fn new(constraint: Constraint) -> Self {
        Self { constraint, masks: 0, moves: 0 }
    }

    /// A mask is computed.
    #[cold]
    pub fn missed_mask(&mut self) {
        self.hand_over([1, 0]);
    }

    /// A move is computed.
    #[cold]
    pub fn missed_move(&mut self) {
        self.hand_over([0, 1]);
    }

    fn hand_over(&mut self, missed: [u64; 2]) {
        let found = [std::mem::take(&mut self.masks), std::mem::take(&mut self.moves)];
        self.constraint.count(found, missed);
    }
}

impl Clone for Tally {
    fn clone(&self) -> Self {
        Self::new(self.constraint.clone())
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        if self.masks + self.moves > 0 {
            self.hand_over([0, 0]);
        }
    }
}
