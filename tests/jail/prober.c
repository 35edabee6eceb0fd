int prober_nothing(void);int prober_nothing(void){return 0;}
