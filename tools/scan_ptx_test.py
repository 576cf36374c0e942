#!/usr/bin/env python3
"""The scan finds each forbidden form and lets the allowed ones pass."""
import unittest

from scan_ptx import scan

PTX_BAD = """ex2.approx.f32 %f1, %f2;
ex2.approx.ftz.f32 %f1, %f2;
lg2.approx.f32 %f1, %f2;
sin.approx.f32 %f1, %f2;
cos.approx.ftz.f32 %f1, %f2;
tanh.approx.f32 %f1, %f2;
rcp.approx.f32 %f1, %f2;
rsqrt.approx.f32 %f1, %f2;
sqrt.approx.f32 %f1, %f2;
div.approx.f32 %f1, %f2, %f3;
div.full.f32 %f1, %f2, %f3;
add.rn.ftz.f32 %f1, %f2, %f3;
fma.rz.f32 %f1, %f2, %f3, %f4;
mul.f32 %f1, %f2, %f3;
mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {};
mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {};
red.global.add.f32 [%rd1], %f1;
atom.global.add.f64 %fd1, [%rd1], %fd2;""".split("\n")
PTX_GOOD = """fma.rn.f32 %f1, %f2, %f3, %f4;
add.rn.f32 %f1, %f2, %f3;
div.rn.f32 %f1, %f2, %f3;
sqrt.rn.f32 %f1, %f2;
cvt.rn.f32.f64 %f1, %fd1;
mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {};
atom.global.add.u64 %rd1, [%rd2], %rd3;""".split("\n")
SASS_BAD = ["MUFU.EX2 R0, R1 ;", "MUFU.LG2 R0, R1 ;", "MUFU.TANH R0, R1 ;",
            "FFMA.FTZ R0, R1, R2, R3 ;", "HMMA.1688.F32.BF16 R0, R1, R2, R3 ;",
            "HMMA.1688.F32.TF32 R0, R1, R2, R3 ;", "RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R2], R5 ;"]
SASS_GOOD = ["MUFU.RCP R0, R1 ;", "MUFU.RSQ R0, R1 ;", "FFMA R0, R1, R2, R3 ;",
             "HMMA.16816.F32.BF16 R0, R1, R2, R3 ;"]
GFX_BAD = ["v_exp_f32_e32 v0, v1", "v_log_f32_e32 v0, v1", "v_sin_f32_e32 v0, v1",
           "v_cos_f32_e32 v0, v1", "v_rsq_f32_e32 v0, v1", "v_rcp_f32_e32 v0, v1",
           "v_mac_f32_e32 v0, v1, v2", "global_atomic_add_f32 v0, v1, s[0:1]",
           "ds_add_f32 v0, v1"]
GFX_GOOD = ["v_fma_f32 v0, v1, v2, v3", "v_mul_f32_e32 v0, v1, v2",
            "v_div_scale_f32 v0, v1, v2, v3\nv_rcp_f32_e32 v0, v1\nv_div_fixup_f32 v0, v1, v2, v3"]
DESCRIPTOR = (".amdhsa_float_round_mode_32 0\n.amdhsa_float_round_mode_16_64 0\n"
              ".amdhsa_float_denorm_mode_32 3\n.amdhsa_float_denorm_mode_16_64 3\n")


class ScanTest(unittest.TestCase):
    def check(self, kind, bad, good, tail=""):
        for line in bad:
            self.assertTrue(scan(kind, line + "\n" + tail), f"{kind}: missed {line}")
        for line in good:
            self.assertEqual(scan(kind, line + "\n" + tail), [], f"{kind}: {line}")

    def test_ptx(self):
        self.check("ptx", PTX_BAD, PTX_GOOD)

    def test_sass(self):
        self.check("sass", SASS_BAD, SASS_GOOD)

    def test_gfx(self):
        self.check("gfx", GFX_BAD, GFX_GOOD, DESCRIPTOR)

    def test_denormals_must_be_kept(self):
        self.assertTrue(scan("gfx", DESCRIPTOR.replace("mode_32 3", "mode_32 0")))
        self.assertTrue(scan("gfx", "v_fma_f32 v0, v1, v2, v3\n"))

    def test_canary(self):
        head = ".visible .entry contraction_canary(\n"
        apart = head + "mul.rn.f32 %f1, %f2, %f3;\nadd.rn.f32 %f4, %f1, %f5;\n"
        self.assertEqual(scan("ptx", apart, canary=True), [])
        self.assertTrue(scan("ptx", head + "fma.rn.f32 %f4, %f1, %f5, %f6;\n", canary=True))
        self.assertTrue(scan("ptx", "ret;\n", canary=True))


if __name__ == "__main__":
    unittest.main()
