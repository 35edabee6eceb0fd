"""Tests of many cases of which `make test` runs some: the first of every N.  All of them run in `make nightly` (set cases), with
NKX_CASES=all, and where a test is asked for by its name or with -k."""
import os

EVERY = {
    "browser/test_drawings.py::test_every_stage_is_drawn_with_all_its_operations": 2,
    "browser/test_rows.py::test_every_line_of_every_stage_has_exactly_one_row": 3,
    "browser/test_writeknob.py::test_a_knob_is_written": 3,
    "conformance/test_collectives.py::test_collectives_are_kept_and_mean_what_they_say_on_every_stage": 3,
    "conformance/test_examples.py::test_independent_runs_of_every_stage_agree_with_numpy": 4,
    "conformance/test_examples.py::test_instructions_compute_what_numpy_computes": 3,
    "conformance/test_examples.py::test_mlir_opt_accepts_every_mlir_stage": 3,
    "conformance/test_hlo_xla.py::test_passes_keep_every_value": 3,
    "conformance/test_jax_hlo.py::test_our_print_is_the_same_program_to_xla": 3,
    "conformance/test_jax_nisa.py::test_a_module_of_jax_computes_on_nisa_what_xla_computes": 3,
    "conformance/test_knob_offers.py::test_an_offered_knob_is_obeyed_and_computes_what_numpy_computes": 3,
    "conformance/test_knobs.py::test_a_tile_along_partition_dim_may_have_more_rows_than_there_are_partitions": 3,
    "conformance/test_knobs.py::test_a_tile_of_a_reduction_may_say_its_result_first": 3,
    "conformance/test_maps.py::test_instructions_lead_back_to_python": 3,
    "conformance/test_opcodes.py::test_an_opcode_computes_at_every_form_what_xla_computes": 3,
    "conformance/test_operations.py::test_calls_have_numpys_dtypes_shapes_and_values": 2,
    "conformance/test_operations.py::test_forms_compute_on_every_stage_what_numpy_computes": 4,
    "conformance/test_random_jax.py::test_random_programs_compute_on_nisa_what_xla_computes": 2,
    "conformance/test_random_kernels.py::test_random_kernels_equal_numpy_at_every_stage": 3,
    "conformance/test_rules.py::test_the_rule_decides_something_in_its_pass": 3,
    "conformance/test_shapes.py::test_the_formulas_are_right_on_odd_shapes": 2,
    "kernels/test_kernel_suite.py::test_a_sample_of_kernels_computes_what_numpy_computes_at_every_stage": 4,
    "kernels/test_kernel_suite.py::test_every_kernel_compiles_to_instructions": 3,
    "nki_kernels/test_beta1.py::test_a_kernel_of_beta_1_on_the_simulated_machine_computes_numpys_formula": 3,
    "nki_kernels/test_beta1.py::test_every_stage_computes_what_the_calls_compute": 3,
    "nki_kernels/test_calls.py::test_every_stage_of_each_call_computes_its_evaluation": 4,
    "nki_kernels/test_errors.py::test_each_refusal_has_its_code_its_range_and_says_what_was_found": 3,
    "nki_kernels/test_examples.py::test_an_example_is_right_as_a_python_program": 3,
    "nki_kernels/test_forms.py::test_each_form_computes_what_numpy_says": 4,
    "nki_kernels/test_mixed.py::test_both_parts_are_simulated_together_and_compute_numpys_formula": 3,
    "nki_kernels/test_mixed.py::test_every_stage_computes_what_the_whole_computes": 3,
    "nki_kernels/test_public_kernels.py::test_a_kernel_computes_numpys_formula_rolled_and_unrolled": 4,
    "nki_kernels/test_random_nki.py::test_every_stage_of_random_kernels_computes_what_their_calls_do": 4,
    "nki_kernels/test_registers.py::test_a_kernel_on_the_simulated_machine_computes_numpys_formula": 3,
    "nki_kernels/test_registers.py::test_each_refusal_has_its_code_its_range_and_says_what_was_found": 3,
    "nki_kernels/test_registers.py::test_every_stage_computes_what_the_record_means": 3,
    "nki_kernels/test_registers.py::test_random_programs_of_registers_compute_what_python_computes": 3,
    "nki_kernels/test_reroll.py::test_loops_take_as_long_as_unrolled_rounds": 2,
    "nki_kernels/test_reroll.py::test_matrix_products_with_blocks_compute_the_product": 2,
    "nki_kernels/test_reroll.py::test_random_loops_compute_the_same_bits_rolled_and_unrolled": 2,
    "nki_kernels/test_reroll.py::test_the_unrolled_and_the_rerolled_program_compute_the_same_bits": 4,
    "nki_kernels/test_running.py::test_every_way_to_run_a_kernel_returns_its_arrays": 2,
    "nki_kernels/test_upgrade.py::test_an_upgraded_kernel_computes_the_same_values": 4,
    "passes/test_fuse_row_tiles_values.py::test_instructions_of_fused_loops_compute_what_numpy_does": 2,
    "passes/test_mutation.py::test_the_pass_of_a_planted_fault_is_named": 2,
    "passes/test_tiling_values.py::test_a_matmul_keeps_its_values_with_every_kind_of_tail": 2,
    "sim/test_engine_programs.py::test_a_removed_wait_is_a_race": 3,
    "sim/test_operations.py::test_activation_equals_numpy": 3,
    "sim/test_operations.py::test_tensor_tensor_arith_equals_numpy": 3,
    "trace/test_check_judges.py::test_a_right_kernel_passes_at_every_stage": 3,
}


def _is_wanted_by_name(config):
    return any("::" in a for a in config.args) or bool(config.option.keyword)


def left_out(config, items, tests):
    """The items of a collection that `make test` does not run.  tests: the folder of all tests."""
    if os.environ.get("NKX_CASES") == "all" or _is_wanted_by_name(config):
        return []
    seen, out = {}, []
    for item in items:
        function = f"{item.path.relative_to(tests)}::{item.originalname}" if hasattr(item, "originalname") else ""
        every = EVERY.get(function)
        if every:
            number = seen[function] = seen.get(function, -1) + 1
            if number % every:
                out.append(item)
    return out
